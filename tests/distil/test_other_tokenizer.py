"""A student of another tokenizer, and another family, from the teacher's traces to its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechdistill.artifacts import read_json, read_table
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.methods import declared_parameters
from mechdistill.distil.targets import read_targets
from mechdistill.heads.pools import write_pools
from mechdistill.models.loading import load_model
from mechdistill.traces.store import read_traces
from tests.distil.conftest import (
    METHOD_SETTINGS,
    TRAINING,
    Study,
    _write_teacher,
    architecture,
    pools_of,
    run_script,
)

FAMILY = "qwen3"
WORLD = {"regions": 5, "groups_in_context": 4, "problems_min": 1, "problems_max": 2}


@dataclass(frozen=True)
class Other:
    """Files of a study whose students have a tokenizer of their own."""

    study: Study
    folder: Path

    def run(self, script: str, params: dict[str, Any], *arguments: str, **files: str) -> None:
        """Run a script; values that name no flag are files, of the folder or else of the study."""
        named = [
            part
            for name, file in files.items()
            for part in (f"--{name.replace('_', '-')}", self.path(file))
        ]
        run_script(script, [*arguments, *named, "--params", json.dumps(params)])

    def path(self, file: str) -> str:
        shared = self.study.folder / file
        return str(shared if shared.exists() and not file.startswith("own") else self.folder / file)


@pytest.fixture(scope="module")
def other(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Other:
    folder = tmp_path_factory.mktemp("other")
    made = Other(study, folder)
    vocabulary = len(load_tokenizer(study.folder / "tokenizer.json"))
    _write_teacher(folder / "own_teacher.safetensors", folder / "own_teacher.json", vocabulary)
    pools = pools_of({(0, 1): 0.6, (1, 2): 0.4}, {(1, 0): 0.7, (1, 3): 0.3})
    write_pools(folder / "own_pools.json", pools, {1: [], 2: []})
    data = {"examples": "examples.parquet", "label_space": "label_space.json"}
    made.run(
        "train_student_tokenizer",
        {"seed": 7, "data.world": WORLD, "distil.student_tokenizer": BPE},
        label_space="label_space.json",
        tokenizer="own_tokenizer.json",
    )
    made.run(
        "retokenise_traces",
        {"traces.max_new_tokens": 300},
        **data,
        traces="traces.parquet",
        tokenizer="tokenizer.json",
        student_tokenizer="own_tokenizer.json",
        student_traces="own_traces.parquet",
    )
    made.run(
        "cache_targets",
        {"distil.teacher_top_k": 8, "heads.minimum_keys": 8, "heads.batch_size": 5},
        **data,
        model="own_teacher.safetensors",
        config="own_teacher.json",
        pools="pools.json",
        traces="traces.parquet",
        tokenizer="tokenizer.json",
        student_tokenizer="own_tokenizer.json",
        targets="own_targets.safetensors",
        table="own_targets.parquet",
    )
    made.run(
        "train_base_student",
        {
            "seed": 7,
            "data.world": WORLD,
            "distil.student": architecture(16, 2, 4) | {"family": FAMILY},
            "distil.base": TRAINING | {"steps": 6},
        },
        *("--seed", "0"),
        label_space="label_space.json",
        tokenizer="own_tokenizer.json",
        checkpoint="own_base_checkpoint",
        model="own_base.safetensors",
        model_config="own_base.json",
        curve="own_base_curve.parquet",
    )
    train(made, "mech", steps=30)
    return made


BPE = {"model": "bpe", "vocabulary": 700}


def train(other: Other, method: str, **training: Any) -> None:
    values = {
        "distil.training": TRAINING | {"batch_size": 4} | training,
        "distil.deepspeed": None,
        **METHOD_SETTINGS,
    }
    keys = ["distil.training", "distil.deepspeed", *declared_parameters(method)]
    other.run(
        "train_student",
        {key: values[key] for key in keys},
        *("--method", method, "--seed", "0"),
        base="own_base.safetensors",
        config="own_base.json",
        pools="own_pools.json",
        targets="own_targets.safetensors",
        traces="own_traces.parquet",
        examples="examples.parquet",
        label_space="label_space.json",
        tokenizer="own_tokenizer.json",
        checkpoint=f"own_{method}_checkpoint",
        model=f"own_{method}.safetensors",
        model_config=f"own_{method}.json",
        curve=f"own_{method}_curve.parquet",
        budget=f"own_{method}_budget.json",
    )


def test_the_vocabularies_differ(other: Other) -> None:
    config = read_json(other.path("own_mech.json"))
    assert config["model_type"] == FAMILY
    assert config["vocab_size"] == len(load_tokenizer(other.path("own_tokenizer.json"))) == 700
    assert config["vocab_size"] != read_json(other.path("own_teacher.json"))["vocab_size"]


def test_all_losses_fall(other: Other) -> None:
    curve = read_table(other.path("own_mech_curve.parquet"))
    terms = curve[curve.metric.str.match("cot_nll|p1_|p2_")]
    assert terms.metric.nunique() == 7
    assert np.isfinite(terms.value).all()
    ends = terms[terms.step >= 25].groupby("metric").value.mean()
    starts = terms[terms.step < 5].groupby("metric").value.mean()
    assert ends["cot_nll"] < 0.9 * starts["cot_nll"]
    assert ends["p1_attention"] < starts["p1_attention"]
    total = curve[curve.metric == "total"].set_index("step").value
    assert total[25:].mean() < total[:5].mean()


def test_what_cannot_be_learned_is_recorded(other: Other) -> None:
    assert read_json(other.path("own_mech_budget.json"))["left_out"] == [
        "cot_kl: student and teacher have different vocabularies"
    ]
    curve = read_table(other.path("own_mech_curve.parquet"))
    assert (curve[curve.metric == "cot_kl"].value == 0).all()
    table = read_table(other.path("own_targets.parquet"))
    assert table.used.all()
    assert (table.early > 0).all()
    assert (table.early_lost == 0).all()
    assert (table.refine_lost == 0).all()
    assert table.refine_elsewhere.sum() > 0


def test_the_cache_and_the_traces_hold_the_same_positions(other: Other) -> None:
    targets = read_targets(other.path("own_targets.safetensors"))
    traces = read_traces(other.path("own_traces.parquet"), "training")
    assert [trace.example for trace in traces] == list(targets.examples)
    for trace in traces:
        cached = targets.examples[trace.example]
        assert len(cached.alignment) == len(trace.early)
        assert len(cached.help) == len(trace.refine)
        assert len(targets.groups[trace.example]) == len(trace.tokens)
        assert cached.rows.shape[1] == max(targets.groups[trace.example]) + 1


@pytest.mark.parametrize("method", ["vanilla_positions", "cwt", "unicott", "random_pool"])
def test_other_methods_train_too(other: Other, method: str) -> None:
    train(other, method, steps=2)
    assert read_json(other.path(f"own_{method}_budget.json"))["steps"] == 2


def test_the_student_writes_in_its_own_tokens_and_is_read_as_any_model(other: Other) -> None:
    """Weights are hardly trained: what counts is that all that reads them fits together."""
    from mechdistill.data.examples import read_examples
    from mechdistill.data.labels import read_label_space
    from mechdistill.traces.generate import generate_traces

    tokenizer = load_tokenizer(other.path("own_tokenizer.json"))
    model = load_model(other.path("own_mech.safetensors"), other.path("own_mech.json"))
    examples = read_examples(other.path("examples.parquet"), "ranking")
    space = read_label_space(other.path("label_space.json"))
    traces = generate_traces(
        model,
        examples,
        tokenizer,
        space,
        early_tokens=30,
        max_new_tokens=12,
        batch_size=4,
        what="own trace",
    )
    for trace, example in zip(traces, examples, strict=True):
        assert tokenizer.decode(trace.tokens[1 : trace.prompt_length]) == example.prompt
        assert len(trace.tokens) - trace.prompt_length == 12 or trace.status != "unfinished"


def test_pools_come_from_the_students_tokens(other: Other) -> None:
    other.run(
        "pool_student_heads",
        {
            "heads.pool_size": 3,
            "heads.pool_temperature": 1.0,
            "heads.minimum_keys": 8,
            "heads.batch_size": 10,
        },
        base="own_base.safetensors",
        config="own_base.json",
        traces="own_traces.parquet",
        examples="examples.parquet",
        label_space="label_space.json",
        tokenizer="own_tokenizer.json",
        pools="own_found_pools.json",
    )
    assert read_json(other.path("own_found_pools.json"))["margin_std"] > 0
