"""Fine-tuning: its loss, LoRA and its merge, and going on from a checkpoint."""

from __future__ import annotations

import copy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from mechdistill.errors import InputError
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.fine_tuning import (
    FineTuning,
    Lesson,
    _trained_weights,
    fine_tune,
    trace_loss,
)
from mechdistill.models.tap import attach

TUNING = FineTuning(
    steps=6,
    batch_size=4,
    texts_a_pass=3,
    learning_rate=0.01,
    warmup_steps=1,
    clip=1.0,
    decision_weight=4.0,
    lora={"rank": 2, "alpha": 4.0},
    precision="float32",
    validate_every=4,
    checkpoint_every=2,
    target_micro_f1=0.0,
)
WAYS = ["lora", "all weights"]


@pytest.fixture(autouse=True)
def _packages(request) -> None:
    if "way" in request.fixturenames and request.getfixturevalue("way") == "lora":
        pytest.importorskip("peft", reason="peft (envs/pretrained.txt) is missing")


@pytest.fixture
def model() -> LlamaForCausalLM:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=50,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        tie_word_embeddings=True,
        pad_token_id=2,
        eos_token_id=2,
    )
    return attach(LlamaForCausalLM(config)).eval()


def draw(rng: np.random.Generator) -> list[Lesson]:
    return [
        Lesson(
            rng.integers(3, 50, rng.integers(4, 9)).tolist(),
            [*rng.integers(3, 50, n).tolist(), 2],
            rng.choice([1.0, TUNING.decision_weight], n + 1).tolist(),
        )
        for n in rng.integers(2, 6, TUNING.batch_size)
    ]


def tuning(way: str, **changes) -> FineTuning:
    return replace(TUNING, lora=TUNING.lora if way == "lora" else None, **changes)


class Killed(Exception):
    pass


def run(model, way: str, path: Path, killed_at: int | None = None, **changes) -> pd.DataFrame:
    drawn = []

    def counting(rng):
        drawn.append(1)
        if len(drawn) == killed_at:
            raise Killed
        return draw(rng)

    def validate(model) -> dict[str, float]:
        assert not model.training
        with torch.no_grad():
            return {"nll": trace_loss(model, draw(np.random.default_rng(99)), 2).item()}

    checkpoint = Checkpoint(path, "this run")
    return fine_tune(
        model, counting, tuning(way, **changes), checkpoint, validate, pad_id=2, seed=0
    )


def test_loss_is_that_of_a_slow_loop_over_single_tokens(model) -> None:
    lessons = draw(np.random.default_rng(0))
    expected = torch.zeros(())
    for prompt, trace, weights in lessons:
        tokens = [*prompt, *trace]
        logits = model(torch.tensor([tokens])).logits[0].log_softmax(-1)
        for number, weight in enumerate(weights):
            position = len(prompt) + number
            expected = expected - weight * logits[position - 1, tokens[position]]
    torch.testing.assert_close(trace_loss(model, lessons, pad_id=2), expected)


def test_the_end_token_is_learnt_though_it_is_also_the_padding(model) -> None:
    with torch.no_grad():
        lessons = Lesson([5, 6, 7], [2], [1.0]), Lesson([5], [9, 2], [1.0, 1.0])
        loss = trace_loss(model, lessons, pad_id=2)
        alone, other = (trace_loss(model, [lesson], pad_id=2) for lesson in lessons)
    assert alone > 0
    torch.testing.assert_close(loss, alone + other)


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_run_ends_in_the_same_weights_and_curve(model, way: str, tmp_path: Path) -> None:
    killed, whole = copy.deepcopy(model), copy.deepcopy(model)
    expected = run(whole, way, tmp_path / "whole")
    with pytest.raises(Killed):
        run(killed, way, tmp_path / "killed", killed_at=6)  # five steps done, four of them saved
    curve = run(model, way, tmp_path / "killed")
    pd.testing.assert_frame_equal(curve, expected, check_exact=True)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, model.state_dict()[name]), name


@pytest.mark.parametrize("way", WAYS)
def test_the_result_is_a_plain_model_that_has_learnt(model, way: str, tmp_path: Path) -> None:
    before = copy.deepcopy(model.state_dict())
    types = [type(module) for module in model.modules()]
    curve = run(model, way, tmp_path / "run", steps=30)
    assert [type(module) for module in model.modules()] == types
    assert not model.training and all(weight.requires_grad for weight in model.parameters())
    assert set(model.state_dict()) == set(before)
    losses = curve.loc[curve["metric"] == "loss", "value"]
    assert losses.iloc[-1] < losses.iloc[0]
    changed = {name for name, value in model.state_dict().items() if not value.equal(before[name])}
    inside = {name for name in before if name.endswith("_proj.weight")}
    assert changed == (inside if way == "lora" else set(before))


def test_the_curve_starts_before_the_first_step(model, tmp_path: Path) -> None:
    curve = run(model, "all weights", tmp_path / "run")
    assert list(zip(curve["step"], curve["metric"])) == [
        *[(0, "nll"), (4, "loss"), (4, "nll"), (6, "loss"), (6, "nll")]
    ]


def test_no_steps_leave_the_model_as_it_is(model, tmp_path: Path) -> None:
    before = copy.deepcopy(model.state_dict())
    curve = run(model, "all weights", tmp_path / "run", steps=0, warmup_steps=0)
    assert list(curve["step"]) == [0]
    assert all(value.equal(before[name]) for name, value in model.state_dict().items())


def test_merged_weights_write_what_the_adapters_did(model) -> None:
    pytest.importorskip("peft", reason="peft (envs/pretrained.txt) is missing")
    ids = torch.arange(3, 20)[None]
    plain = model(ids).logits
    with torch.no_grad(), _trained_weights(model, TUNING.lora, 0) as trained:
        for weight in trained:
            weight.add_(0.3)
        adapted = model(ids).logits
    assert (adapted - plain).abs().max() > 0.01
    torch.testing.assert_close(model(ids).logits, adapted, atol=1e-5, rtol=1e-4)


def test_passes_and_precision_change_nothing_but_rounding(model, tmp_path: Path) -> None:
    one, other = copy.deepcopy(model), copy.deepcopy(model)
    run(one, "all weights", tmp_path / "a", steps=1, warmup_steps=0, texts_a_pass=1)
    run(other, "all weights", tmp_path / "b", steps=1, warmup_steps=0, texts_a_pass=4)
    half = copy.deepcopy(model)
    curve = run(half, "all weights", tmp_path / "c", steps=1, warmup_steps=0, precision="bfloat16")
    for name, value in one.state_dict().items():
        torch.testing.assert_close(other.state_dict()[name], value, atol=2e-3, rtol=0)
        assert half.state_dict()[name].dtype == torch.float32
    assert np.isfinite(curve["value"]).all()


def test_lora_without_its_package_is_one_error(model, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(InputError, match=r"peft is not installed(.|\n)*envs/pretrained\.txt"):
        run(model, "lora", tmp_path / "run")
