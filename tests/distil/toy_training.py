"""A toy model and objective for the trainer's tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mechdistill.distil.budget import Spent
from mechdistill.distil.engine import OneProcess, Part
from mechdistill.distil.history import History, Term
from mechdistill.distil.trainer import TrainingSettings, optimiser_of, train
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.optimiser import Optimiser

SETTINGS: dict[str, Any] = {
    "steps": 30,
    "batch_size": 4,
    "learning_rate": 0.05,
    "adamw_learning_rate": 0.02,
    "warmup_steps": 3,
    "clip": 1.0,
    "checkpoint_every": 10,
    "weights": "float32",
}
VOCABULARY, WIDTH, TOKENS = 7, 8, 20


class ToyModel(nn.Module):
    """Embedding, one matrix, norm gain, read-out; dropout, so that random state matters."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.hidden = nn.Linear(WIDTH, WIDTH, bias=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(0.1)
        self.read_out = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def get_output_embeddings(self) -> nn.Module:
        return self.read_out

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.norm(self.hidden(self.embedding(ids)))
        logits: Tensor = self.read_out(self.dropout(hidden))
        return logits


class ToyObjective:
    """Predict the next token modulo the vocabulary, divided by the loss at step 0."""

    def __init__(self, model: nn.Module, stop: int | None, spoil: int | None) -> None:
        self.model, self.stop, self.spoil = model, stop, spoil
        self.unit = 0.0

    def begin(self) -> Spent:
        self.unit = float(self.loss(0).detach())
        return Spent(forward_tokens=TOKENS)

    def loss(self, number: int) -> Tensor:
        generator = torch.Generator().manual_seed(number)
        ids = torch.randint(0, VOCABULARY, (TOKENS,), generator=generator)
        return nn.functional.cross_entropy(self.model(ids), (ids + 1) % VOCABULARY)

    def step(self, number: int) -> tuple[list[Part], Spent]:
        if number == self.stop:
            raise KeyboardInterrupt
        value = self.loss(number)
        if number == self.spoil:
            value = value * torch.inf
        size = self.model.get_parameter("hidden.weight").square().mean()
        terms = {"next": Term(value, 1 / self.unit), "size": Term(size, 0.1)}
        return [lambda: terms], Spent(
            steps=1, sequences=4, target_tokens=TOKENS, forward_tokens=TOKENS
        )

    def state(self) -> dict[str, Any]:
        return {"unit": self.unit}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.unit = state["unit"]


def toy_model() -> ToyModel:
    torch.manual_seed(0)
    return ToyModel()


def model_and_optimiser(settings: TrainingSettings) -> tuple[nn.Module, Optimiser]:
    model = toy_model()
    return model, optimiser_of(model, settings)


def train_toy(
    path: Path,
    settings: TrainingSettings,
    *,
    identity: str = "toy",
    interrupt_at: int | None = None,
    spoil_at: int | None = None,
) -> tuple[ToyModel, History, Spent]:
    model = toy_model()
    objective = ToyObjective(model, interrupt_at, spoil_at)
    checkpoint = Checkpoint(path, identity)
    engine = OneProcess(model, optimiser_of(model, settings), checkpoint, settings.clip)
    history, spent = train(engine, objective, settings, "training step")
    return model, history, spent


def run(path: Path, settings: TrainingSettings, **options: Any) -> tuple[History, Spent]:
    _, history, spent = train_toy(path, settings, **options)
    return history, spent


def weights_after(path: Path, settings: TrainingSettings) -> dict[str, Tensor]:
    model, _, _ = train_toy(path, settings)
    return dict(model.state_dict())
