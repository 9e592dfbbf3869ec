"""The training loop on a toy objective: what a step does, and that a resumed run loses nothing."""

from pathlib import Path

import pytest
import torch

from mechdistill.distil.trainer import TrainingSettings
from tests.distil import toy_training

SETTINGS = TrainingSettings(**toy_training.SETTINGS)


def test_training_lowers_the_loss(tmp_path: Path) -> None:
    history, _ = toy_training.run(tmp_path / "checkpoint.safetensors", SETTINGS)
    total = history.frame().query("metric == 'total'").value
    assert total.iloc[-5:].mean() < 0.5 * total.iloc[:5].mean()


def test_total_is_the_weighted_sum_of_the_terms(tmp_path: Path) -> None:
    history, _ = toy_training.run(tmp_path / "checkpoint.safetensors", SETTINGS)
    frame = history.frame()
    terms = frame.dropna(subset="weight")
    summed = (terms.value * terms.weight).groupby(terms.step).sum()
    total = frame.query("metric == 'total'").set_index("step").value
    assert (summed - total).abs().max() < 1e-5


def test_costs_add_up_over_steps(tmp_path: Path) -> None:
    _, spent = toy_training.run(tmp_path / "checkpoint.safetensors", SETTINGS)
    assert spent.steps == SETTINGS.steps
    assert spent.target_tokens == SETTINGS.steps * toy_training.TOKENS
    assert spent.wall_seconds > 0
    assert spent.peak_memory_mib > 10


@pytest.mark.parametrize("stop", [1, 7, 10, 23])
def test_a_run_broken_off_by_an_error_ends_in_the_same_weights(tmp_path: Path, stop: int) -> None:
    whole = toy_training.weights_after(tmp_path / "whole.safetensors", SETTINGS)
    path = tmp_path / "broken.safetensors"
    with pytest.raises(KeyboardInterrupt):
        toy_training.run(path, SETTINGS, interrupt_at=stop)
    again = toy_training.weights_after(path, SETTINGS)
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_a_resumed_run_tells_the_same_history(tmp_path: Path) -> None:
    whole, _ = toy_training.run(tmp_path / "whole.safetensors", SETTINGS)
    path = tmp_path / "broken.safetensors"
    with pytest.raises(KeyboardInterrupt):
        toy_training.run(path, SETTINGS, interrupt_at=17)
    again, spent = toy_training.run(path, SETTINGS)
    assert again.content() == whole.content()
    assert spent.steps == SETTINGS.steps


def test_a_gradient_that_is_not_finite_stops_the_training(tmp_path: Path) -> None:
    with pytest.raises(FloatingPointError, match="training step 4"):
        toy_training.run(tmp_path / "checkpoint.safetensors", SETTINGS, spoil_at=4)
