"""Students whose weights, gradients and optimiser's state are bfloat16."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from mechdistill.models.optimiser import Optimiser
from mechdistill.models.precision import to_precision

from .conftest import run_script, tiny_model


def test_state_has_the_weights_format_and_buffers_stay_exact() -> None:
    model = to_precision(tiny_model(0), "bfloat16")
    optimiser = Optimiser(
        model, learning_rate=0.01, adamw_learning_rate=0.01, steps=4, warmup_steps=1
    )
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    model(torch.tensor([[1, 5, 6, 7]])).logits.float().square().mean().backward()
    assert {p.grad.dtype for p in model.parameters()} == {torch.bfloat16}
    optimiser.step(1)
    moments = {name: t for name, t in optimiser.tensors().items() if not name.endswith("step")}
    assert {t.dtype for t in moments.values()} == {torch.bfloat16}
    after = dict(model.named_parameters())
    assert {p.dtype for p in after.values()} == {torch.bfloat16}
    assert any(not torch.equal(after[name], old) for name, old in before.items())
    floating = [b for b in model.buffers() if b.is_floating_point()]
    assert floating and {b.dtype for b in floating} == {torch.float32}


@pytest.mark.parametrize("method", ["vanilla", "mech"])
def test_a_student_trained_in_bfloat16_is_saved_exactly_and_again(
    study, tmp_path: Path, method: str
) -> None:
    saved = {}
    for name in ("first", "again", "exact"):
        (tmp_path / name).mkdir()
        weights = "float32" if name == "exact" else "bfloat16"
        arguments = study.student_arguments(
            tmp_path / name, method, steps=4, warmup_steps=1, weights=weights
        )
        run_script("train_student", arguments)
        saved[name] = load_file(tmp_path / name / "model.safetensors")
        budget = json.loads((tmp_path / name / "budget.json").read_text(encoding="utf-8"))
        assert budget["weights"] == weights
    base = load_file(study.folder / "base.safetensors")
    for name, first in saved["first"].items():
        assert first.dtype == torch.float32
        assert torch.equal(first, first.bfloat16().float())
        assert torch.equal(first, saved["again"][name])
    assert any(not torch.equal(base[k].bfloat16().float(), v) for k, v in saved["first"].items())
    assert any(not torch.equal(v, v.bfloat16().float()) for v in saved["exact"].values())
