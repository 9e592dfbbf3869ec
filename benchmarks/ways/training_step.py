"""Training steps of the methods `vanilla` and `mech` on cached targets of a made-up teacher.

A step is everything from collating the batch to the optimiser's update. The teacher is gone before
the first step: its targets are all that is left of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.made_up import MadeUp, made_up_model, made_up_trace
from benchmarks.worker import Work, main
from mechdistill.distil.caching import cache_targets
from mechdistill.distil.engine import OneProcess
from mechdistill.distil.method import Student
from mechdistill.distil.methods import load_method
from mechdistill.distil.objective import Distillation
from mechdistill.distil.order import DataOrder
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.heads.pools import Pool, Pools
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.optimiser import Optimiser
from mechdistill.traces.parse import RefinePosition

SETTINGS = {"distil.lambda_kl": 1.0, "distil.lambda_p1": 0.3, "distil.lambda_p2": 0.3}
POOL, TOP_K, MINIMUM_KEYS = 4, 16, 8
"""As params.yaml sets them."""
STEPS = 1000


def step(setting: Mapping[str, Any], *, method: str) -> Work:
    """One more step of the method's training each time; the losses of the first are its values."""
    torch.set_num_threads(1)
    sequences = [
        _sequence(f"made up {seed}", made_up_trace(setting["tokens"], seed))
        for seed in range(setting["examples"])
    ]
    special = {"pad_id": 0, "special_ids": (0, 1, 2)}
    teacher = made_up_model(setting["model"], "tapped", seed=1)
    targets = cache_targets(
        teacher,
        sequences,
        _anchors(sequences, teacher),
        _pools(teacher),
        top_k=TOP_K,
        minimum_keys=MINIMUM_KEYS,
        batch_size=1,
        **special,
    )
    del teacher

    model = made_up_model(setting["model"], "tapped").requires_grad_(True).train()
    trained = load_method(method)(SETTINGS)
    anchors = _anchors(sequences, model)
    trained.start(
        Student(model, _pools(model), anchors, targets.pool_sizes, MINIMUM_KEYS), sequences
    )
    order = DataOrder([len(s.tokens) for s in sequences], len(sequences), seed=0)
    optimiser = Optimiser(
        model, learning_rate=1e-3, adamw_learning_rate=1e-3, steps=STEPS, warmup_steps=0
    )
    engine = OneProcess(model, optimiser, Checkpoint(Path(os.devnull), "never saved"), clip=1.0)
    objective = Distillation(model, trained, sequences, targets, order, **special, engine=engine)
    objective.begin()
    # its state exists before the first timed step, as in the middle of a training
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step(0)
    number = 0

    def work() -> dict[str, np.ndarray]:
        nonlocal number
        (part,), _ = objective.step(number)
        terms, _ = engine.learn(part, number)
        engine.update(number)
        number += 1
        return {name: terms[name].value.detach().numpy() for name in ("cot_nll", "cot_kl")}

    return work


def _sequence(name: str, trace: MadeUp) -> TrainingSequence:
    predicting = tuple(range(trace.prompt_length - 1, len(trace.ids) - 1))
    return TrainingSequence(
        example=name,
        tokens=trace.ids,
        predicting=predicting,
        weights=(1.0,) * len(predicting),
        teacher_rows=tuple(range(len(predicting))),
        early=trace.early,
        refine=tuple(
            RefinePosition(query, trace.target, trace.foil, 0, trace.shortlist, trace.near_miss)
            for query in trace.refine
        ),
    )


def _anchors(sequences: list[TrainingSequence], model: Any) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    width = model.config.hidden_size
    return {s.example: torch.randn(width, generator=generator) for s in sequences}


def _pools(model: Any) -> Pools:
    """Heads spread over all layers."""
    config = model.config
    count = config.num_hidden_layers * config.num_attention_heads

    def pool(phase: int) -> Pool:
        chosen = torch.linspace(phase - 1, count - 3 + phase, min(POOL, count // 2)).long()
        weights = torch.full((len(chosen),), 1 / len(chosen))
        heads = config.num_attention_heads
        return Pool(phase, chosen // heads, chosen % heads, weights)

    return Pools("made up", pool(1), pool(2), margin_std=1.0)


if __name__ == "__main__":
    main({name: partial(step, method=name) for name in ("vanilla", "mech")})
