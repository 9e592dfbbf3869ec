"""Trainings for the tests of ZeRO-3: run by torchrun, in a process of its own each.

`torchrun ... zero_worker.py FOLDER CASE ...` trains each case and writes what came of it to
FOLDER/CASE.json, and its weights to FOLDER/CASE.safetensors.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mechdistill.artifacts import write_json, write_tensors
from mechdistill.distil.caching import cache_targets
from mechdistill.distil.engine import Engine, OneProcess
from mechdistill.distil.method import Student
from mechdistill.distil.methods import load_method
from mechdistill.distil.objective import Distillation
from mechdistill.distil.order import DataOrder
from mechdistill.distil.trainer import TrainingSettings, train
from mechdistill.distil.zero import Zero, ZeroSettings
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.optimiser import ScheduledOptimiser, adamw
from tests.distil.conftest import (
    METHOD_SETTINGS,
    PAD,
    SPECIAL,
    TRAINING,
    pools_of,
    sequence,
    tiny_model,
)

SETTINGS = TrainingSettings(
    **TRAINING
    | {"steps": 6, "batch_size": 8, "warmup_steps": 2, "checkpoint_every": 2, "clip": 0.5}
)
ZERO = ZeroSettings(micro_batch=2, precision="float32", offload=True, gradient_checkpointing=False)
CASES: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "mech": {},
    "p2_only": {},
    "vanilla_margin": {},
    "checkpointing": {"method": "mech", "zero": replace(ZERO, gradient_checkpointing=True)},
    "without_offload": {"method": "mech", "zero": replace(ZERO, offload=False)},
    "gemma2": {"method": "mech", "family": "gemma2"},
    "bfloat16": {"method": "mech", "zero": replace(ZERO, precision="bfloat16")},
    "stopped": {"method": "mech", "stop": 3},
    "resumed": {"method": "mech", "kept": "stopped"},
    "left": {"method": "mech", "stop": 5},
    "fewer": {"method": "mech", "kept": "left"},
}
SEQUENCES = [sequence(n, 24 + n % 5, 4 + n % 3, (2, 0, 0, 1)[n % 4]) for n in range(8)]
"""Half of them have no refinement position, so that some parts of a batch have none."""


def anchors(width: int, seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {s.example: torch.randn(width, generator=generator) for s in SEQUENCES}


class Stopped(Exception):
    """What a preemption is to the training."""


class Stopping(Distillation):
    """Breaks off before a step."""

    at: int | None = None

    def step(self, number: int) -> Any:
        if number == self.at:
            raise Stopped
        return super().step(number)


def run(
    folder: Path,
    case: str,
    *,
    method: str | None = None,
    zero: ZeroSettings | None = ZERO,
    family: str = "llama",
    stop: int | None = None,
    kept: str | None = None,
) -> None:
    """Train, and write history, weights and what the engine says of itself."""
    teacher = tiny_model(1, hidden=32, layers=3)
    targets = cache_targets(
        teacher,
        SEQUENCES,
        anchors(32, 5),
        pools_of({(0, 1): 0.5, (2, 0): 0.5}, {(1, 2): 0.6, (2, 3): 0.4}),
        top_k=5,
        minimum_keys=8,
        pad_id=PAD,
        special_ids=SPECIAL,
        batch_size=2,
    )
    model = tiny_model(2, family=family).train()
    cls = load_method(method or case)
    started = cls({key: METHOD_SETTINGS[key] for key in cls.parameters})
    pools = pools_of({(0, 0): 0.7, (1, 3): 0.3}, {(1, 1): 0.8, (1, 3): 0.2})
    student = Student(model, pools, anchors(24, 6), targets.pool_sizes, 8)
    started.start(student, SEQUENCES)
    order = DataOrder([len(s.tokens) for s in SEQUENCES], SETTINGS.batch_size, 0)
    place = folder / f"state-{kept or case}"
    engine: Engine
    if zero is None:
        optimiser = ScheduledOptimiser(
            {"adamw": adamw(model.parameters(), SETTINGS.adamw_learning_rate)},
            {"adamw": SETTINGS.adamw_learning_rate},
            steps=SETTINGS.steps,
            warmup_steps=SETTINGS.warmup_steps,
        )
        engine = OneProcess(model, optimiser, Checkpoint(place, "run"), SETTINGS.clip)
    else:
        engine = Zero(model, zero, SETTINGS, order.batch_size, place, "run")
    objective = Stopping(model, started, SEQUENCES, targets, order, PAD, SPECIAL, engine)
    objective.at = stop
    try:
        history, spent = train(engine, objective, SETTINGS, case)
    except Stopped:
        return
    if isinstance(engine, Zero):
        partitioned = sum(weight.numel() == 0 for weight in model.parameters())
        weights = engine.whole_weights()
    else:
        partitioned, weights = 0, dict(model.named_parameters())
    if weights is None:
        return
    write_tensors(folder / f"{case}.safetensors", weights)
    content = {
        "history": history.content(),
        "spent": spent.content(),
        "partitioned": partitioned,
        "matrices": sum(weight.ndim == 2 for weight in weights.values()),
        "engine": engine.about(),
    }
    write_json(folder / f"{case}.json", content)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[2:]:
        run(Path(sys.argv[1]), name, **CASES[name])
