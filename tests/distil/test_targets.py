"""The cache of teacher targets on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from mechdistill.artifacts import write_tensors
from mechdistill.distil.targets import ExampleTargets, Targets, read_targets, write_targets
from mechdistill.errors import InputError


def example(tokens: int, early: int, refine: int, length: int) -> ExampleTargets:
    return ExampleTargets(
        kept=torch.randint(0, 50, (tokens, 4), dtype=torch.int32),
        log_probabilities=torch.randn(tokens, 5),
        rows=torch.rand(early, length),
        alignment=torch.randn(early),
        coarse_interaction=torch.randn(early),
        loop=torch.randn(refine),
        help=torch.randn(refine),
        refine_interaction=torch.randn(refine),
    )


@pytest.fixture
def targets() -> Targets:
    return Targets(
        {"b": example(7, 3, 2, 20), "a": example(5, 4, 0, 17), "c": example(1, 0, 1, 9)},
        {1: 4, 2: 0},
        8,
    )


def test_what_was_written_comes_back(tmp_path: Path, targets: Targets) -> None:
    write_targets(tmp_path / "targets.safetensors", targets)
    found = read_targets(tmp_path / "targets.safetensors")
    assert list(found.examples) == ["b", "a", "c"]
    assert found.pool_sizes == {1: 4, 2: 0}
    assert found.minimum_keys == 8
    for name, expected in targets.examples.items():
        for field, value in vars(expected).items():
            assert torch.equal(getattr(found.examples[name], field), value), (name, field)


def test_equal_targets_give_equal_bytes(tmp_path: Path, targets: Targets) -> None:
    for name in ("one", "two"):
        write_targets(tmp_path / name, targets)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_another_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    write_tensors(path, {"weight": torch.ones(2)})
    with pytest.raises(InputError, match=r"weights\.safetensors is not a cache of teacher targets"):
        read_targets(path)


def test_a_truncated_file_is_refused_by_name(tmp_path: Path, targets: Targets) -> None:
    path = tmp_path / "targets.safetensors"
    write_targets(path, targets)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(InputError, match=r"targets\.safetensors"):
        read_targets(path)
