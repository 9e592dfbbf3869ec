"""Runs that read their common beginning once against runs that read it for every prompt."""

from __future__ import annotations

import pytest
import torch

from mechdistill.models import shared_prefix
from mechdistill.models.batching import left_pad
from mechdistill.models.branches import grow_trunk, run_branches
from mechdistill.models.generate import greedy, sampled
from mechdistill.models.recorded import record_greedy
from mechdistill.models.shared_prefix import SharedPrefix, common_beginning
from mechdistill.models.tap import Tap
from tests.models.tiny import LAYERS

LIST = [7, 3, 9, 11, 4, 30, 31, 32, 8, 6, 5, 12]
"""Longer than the window of the models that have one."""
PROMPTS = [LIST + note for note in ([20, 21, 22], [40], [23] * 14, [50, 51, 52, 53, 54])]
SETTINGS = {"max_new_tokens": 6, "eos_id": -1, "pad_id": 0}
CLOSE = {"atol": 2e-5, "rtol": 2e-5}


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> list[SharedPrefix | None]:
    """Short beginnings are shared as well; every prefix that a run asked for."""
    monkeypatch.setattr(shared_prefix, "LEAST", 5)
    asked: list[SharedPrefix | None] = []
    of = SharedPrefix.of
    monkeypatch.setattr(
        SharedPrefix,
        "of",
        classmethod(lambda cls, *arguments: asked.append(of(*arguments)) or asked[-1]),
    )
    return asked


def test_greedy_texts_are_those_without_sharing(tapped, shared):
    batched = {"batch_size": 3, "what": "test", **SETTINGS}
    found = greedy(tapped, PROMPTS, **batched)
    assert [prefix.length for prefix in shared] == [len(LIST)]  # once for both batches
    expected = [greedy(tapped, [prompt], **batched)[0] for prompt in PROMPTS]
    assert found == expected


def test_samples_are_those_without_sharing(tapped, shared, monkeypatch):
    drawn = {"temperature": 1.0, "seed": 3, "batch_size": 4, "what": "test", **SETTINGS}
    found = sampled(tapped, PROMPTS, **drawn)
    monkeypatch.setattr(shared_prefix, "LEAST", 1000)
    assert found == sampled(tapped, PROMPTS, **drawn)
    assert shared[0] is not None and shared[1] is None


def test_recorded_runs_are_those_without_sharing(tapped, shared, monkeypatch):
    found = record_greedy(tapped, PROMPTS, **SETTINGS)
    monkeypatch.setattr(shared_prefix, "LEAST", 1000)
    expected = record_greedy(tapped, PROMPTS, **SETTINGS)
    assert [prefix is None for prefix in shared] == [False, True]
    for one, other in zip(found, expected, strict=True):
        assert (one.prompt, one.tokens) == (other.prompt, other.tokens)
        for mine, theirs in zip(one.cache, other.cache, strict=True):
            torch.testing.assert_close(mine, theirs, **CLOSE)
        for step in range(len(one.tokens)):
            for layer in range(LAYERS):
                for kind in ("pattern", "output"):
                    torch.testing.assert_close(
                        getattr(one, kind)[step][layer], getattr(other, kind)[step][layer], **CLOSE
                    )


def test_scores_at_decisions_are_those_without_sharing(tapped, shared):
    batch = left_pad(PROMPTS, 0)
    positions = batch.positions([[12, 14], [12], [20, 25], [15]])
    prefix = SharedPrefix.of(tapped, PROMPTS)
    taps = Tap(positions), Tap(positions)
    trunks = (
        grow_trunk(tapped, batch.ids, batch.mask, taps[0], prefix),
        grow_trunk(tapped, batch.ids, batch.mask, taps[1]),
    )
    for layer in range(LAYERS):
        for kind in ("rows", "mixed", "visible"):
            torch.testing.assert_close(
                getattr(taps[0].record[layer], kind), getattr(taps[1].record[layer], kind), **CLOSE
            )
    used = positions >= 0
    logits = [run_branches(tapped, trunk, positions).logits[used] for trunk in trunks]
    torch.testing.assert_close(*logits, **CLOSE)
    plain = tapped(batch.ids, attention_mask=batch.mask).logits
    row, slot = used.nonzero(as_tuple=True)
    torch.testing.assert_close(logits[0], plain[row, positions[row, slot]], **CLOSE)


def test_lists_that_differ_are_not_shared(tapped, shared):
    other = [*LIST[:3], 60, *LIST[4:], 20]
    assert SharedPrefix.of(tapped, [*PROMPTS, other]) is None
    assert common_beginning([*PROMPTS, other]) == 3


def test_a_prompt_that_is_the_beginning_keeps_a_token_to_be_read(tapped, shared):
    prompts = [LIST, [*LIST, 20, 21]]
    assert SharedPrefix.of(tapped, prompts).length == len(LIST) - 1
    both = greedy(tapped, prompts, batch_size=2, what="test", **SETTINGS)
    assert both[0] == greedy(tapped, [LIST], batch_size=1, what="test", **SETTINGS)[0]
    assert record_greedy(tapped, [LIST, LIST], **SETTINGS)[0].tokens == tuple(both[0])


def test_short_beginnings_are_read_with_the_rest(tapped):
    assert SharedPrefix.of(tapped, PROMPTS) is None
