"""Tiny models and sequences for the distillation tests."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mechdistill.distil.sequences import TrainingSequence
from mechdistill.heads.pools import Pool, Pools
from mechdistill.models.loading import build_model
from mechdistill.traces.parse import RefinePosition

VOCABULARY = 23
PAD, BOS, EOS = 0, 1, 2


def tiny_model(seed: int, *, hidden: int = 24, layers: int = 2, heads: int = 4) -> Any:
    """A Llama with grouped queries whose weights are large enough for sharp attention."""
    architecture = {
        "family": "llama",
        "hidden_size": hidden,
        "layers": layers,
        "heads": heads,
        "kv_heads": 2,
        "intermediate_size": 32,
        "rope_theta": 100.0,
    }
    model = build_model(
        architecture,
        vocab_size=VOCABULARY,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        max_positions=64,
        seed=seed,
    )
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(12.0)
    return model.eval()


def pools_of(phase1: dict[tuple[int, int], float], phase2: dict[tuple[int, int], float]) -> Pools:
    """Pools with the given weight of each (layer, head)."""
    first, second = (
        Pool(
            phase,
            torch.tensor([layer for layer, _ in weights], dtype=torch.long),
            torch.tensor([head for _, head in weights], dtype=torch.long),
            torch.tensor(list(weights.values())),
        )
        for phase, weights in ((1, phase1), (2, phase2))
    )
    return Pools("tiny", first, second, margin_std=2.5)


def sequence(number: int, length: int, early: int, refine: int) -> TrainingSequence:
    """Random tokens: a prompt of 12, `early` early positions, `refine` refinement positions."""
    generator = torch.Generator().manual_seed(100 + number)
    tokens = [BOS, *torch.randint(3, VOCABULARY, (length - 1,), generator=generator).tolist()]
    predicting = tuple(range(11, length - 1))
    queries = [length - 2 - 3 * at for at in reversed(range(refine))]
    return TrainingSequence(
        example=f"training-{number}",
        tokens=tuple(tokens),
        predicting=predicting,
        weights=(1.0,) * len(predicting),
        teacher_rows=tuple(range(len(predicting))),
        early=predicting[:early],
        refine=tuple(
            RefinePosition(
                query=query,
                target=3 + at,
                foil=8 + at,
                clause=at,
                shortlist=(12, 13 + at),
                near_miss=(15,) if at % 2 else (15, 16),
            )
            for at, query in enumerate(queries)
        ),
    )


@pytest.fixture
def sequences() -> list[TrainingSequence]:
    """Unequal lengths and numbers of positions; one sequence without refinement positions."""
    return [sequence(0, 30, 6, 2), sequence(1, 24, 4, 0), sequence(2, 27, 5, 1)]


@pytest.fixture
def teacher() -> Any:
    return tiny_model(1, hidden=32, layers=3)


@pytest.fixture
def student() -> Any:
    return tiny_model(2)


@pytest.fixture
def teacher_pools() -> Pools:
    return pools_of({(0, 1): 0.5, (2, 0): 0.3, (2, 3): 0.2}, {(1, 2): 0.6, (2, 3): 0.4})


@pytest.fixture
def student_pools() -> Pools:
    return pools_of({(0, 0): 0.7, (1, 3): 0.3}, {(1, 1): 0.8, (1, 3): 0.2})
