"""Checkpoints: whole, of one run, free of pickle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.optimiser import Optimiser
from tests.models.test_optimiser import Toy, backward, optimiser_of


def trained() -> tuple[nn.Module, Optimiser]:
    torch.manual_seed(0)
    model = Toy()
    optimiser = optimiser_of(model)
    backward(model)
    optimiser.step(0)
    return model, optimiser


def fresh() -> tuple[nn.Module, Optimiser]:
    model = Toy()
    return model, optimiser_of(model)


def test_what_was_saved_comes_back(tmp_path: Path, capsys) -> None:
    model, optimiser = trained()
    checkpoint = Checkpoint(tmp_path / "c", "run")
    checkpoint.save(1, model, optimiser, {"unit": 0.1 + 0.2})
    expected = torch.rand(3)
    other, its_optimiser = fresh()
    assert checkpoint.restore(other, its_optimiser) == (1, {"unit": 0.1 + 0.2})
    assert torch.equal(torch.rand(3), expected)  # the random state came back too
    assert capsys.readouterr().err == "training goes on from step 1\n"
    for name, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[name])
    for name, value in optimiser.tensors().items():
        assert torch.equal(value, its_optimiser.tensors()[name])


def test_no_checkpoint_means_step_0(tmp_path: Path) -> None:
    assert Checkpoint(tmp_path / "c", "run").restore(*fresh()) == (0, {})


def test_a_checkpoint_of_another_run_is_passed_over(tmp_path: Path, capsys) -> None:
    Checkpoint(tmp_path / "c", "old").save(1, *trained(), {})
    assert Checkpoint(tmp_path / "c", "new").restore(*fresh()) == (0, {})
    assert "another run" in capsys.readouterr().err


@pytest.mark.parametrize("size", [0, 5, 200])
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, capsys, size: int) -> None:
    checkpoint = Checkpoint(tmp_path / "c", "run")
    checkpoint.save(1, *trained(), {})
    checkpoint.path.write_bytes(checkpoint.path.read_bytes()[:size])
    assert checkpoint.restore(*fresh()) == (0, {})
    assert "cannot be read" in capsys.readouterr().err


def test_a_checkpoint_holds_no_pickle(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "c", "run")
    checkpoint.save(1, *trained(), {})
    raw = checkpoint.path.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    parts = {name.split(".")[0] for name in header}
    assert parts == {"model", "optimiser", "random", "__metadata__"}


def test_a_discarded_checkpoint_is_gone(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "c", "run")
    checkpoint.save(1, *trained(), {})
    checkpoint.discard()
    checkpoint.discard()
    assert not checkpoint.path.exists()
