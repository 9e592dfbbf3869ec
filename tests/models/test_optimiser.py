"""Muon and AdamW as one optimiser, and its schedule."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from mechdistill.models.optimiser import Optimiser, schedule


class Toy(nn.Module):
    """Embedding, a matrix inside, a norm, a read-out."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 8)
        self.hidden = nn.Linear(8, 8, bias=False)
        self.norm = nn.LayerNorm(8)
        self.read_out = nn.Linear(8, 7, bias=False)

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def get_output_embeddings(self) -> nn.Module:
        return self.read_out


def optimiser_of(model: nn.Module) -> Optimiser:
    return Optimiser(model, learning_rate=0.05, adamw_learning_rate=0.02, steps=10, warmup_steps=2)


def backward(model: nn.Module) -> None:
    sum((parameter + 1).square().sum() for parameter in model.parameters()).backward()


def test_schedule_warms_up_and_ends_near_zero() -> None:
    shares = [schedule(step, steps=100, warmup=10) for step in range(100)]
    assert shares[0] == pytest.approx(0.1)
    assert shares[10] == max(shares) == 1
    assert shares[-1] < 1e-3
    assert schedule(0, steps=5, warmup=0) == 1


def test_every_parameter_is_updated() -> None:
    model = Toy()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    backward(model)
    optimiser_of(model).step(0)
    assert all(not torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_only_matrices_inside_the_layers_are_orthogonalised() -> None:
    model = Toy()
    optimiser = optimiser_of(model)
    backward(model)
    optimiser.step(0)
    muon = [name for name in optimiser.tensors() if name.startswith("muon.")]
    assert muon == ["muon.0.momentum_buffer"]
    adamw = {name.split(".")[1] for name in optimiser.tensors() if name.startswith("adamw.")}
    assert len(adamw) == 4  # embedding, read-out, gain and bias of the norm


def test_a_restored_state_goes_on_alike() -> None:
    torch.manual_seed(0)
    model, twin = Toy(), Toy()
    first = optimiser_of(model)
    backward(model)
    first.step(0)
    twin.load_state_dict(model.state_dict())
    second = optimiser_of(twin)
    second.restore({name: value.clone() for name, value in first.tensors().items()})
    for owner, optimiser in ((model, first), (twin, second)):
        backward(owner)
        optimiser.step(1)
    for name, value in model.state_dict().items():
        assert torch.equal(value, twin.state_dict()[name])
