"""A tiny random model of each family: one behind the tap, one that transformers runs eagerly."""

from __future__ import annotations

import copy

import pytest
import torch

from mechdistill.models.batching import Batch, left_pad
from mechdistill.models.tap import attach
from tests.models.tiny import MAKERS, eager_model

LENGTHS = (17, 23, 9)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(params=list(MAKERS))
def eager(request: pytest.FixtureRequest):
    return eager_model(request.param)


@pytest.fixture
def tapped(eager):
    return attach(copy.deepcopy(eager))


def batch_of(lengths: tuple[int, ...], seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    return left_pad(
        [torch.randint(1, 61, (n,), generator=generator).tolist() for n in lengths], pad_id=0
    )


@pytest.fixture(params=["padded", "unpadded"])
def batch(request: pytest.FixtureRequest) -> Batch:
    """Sequences longer than a window and, padded, one that hardly is."""
    return batch_of(LENGTHS if request.param == "padded" else (21, 21, 21))
