"""Recorded and patched greedy runs against decoding without cache, one prompt at a time."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from mechdistill.models.recorded import patched_greedy, record_greedy
from mechdistill.models.tap import Intervention, Tap
from tests.models.tiny import HEADS, LAYERS, eager_model

PROMPTS = [[5, 6, 7, 8, 9, 10], [12, 13, 14], [20, 21, 22, 23], [3]]
OTHERS = [[15, 6, 27, 8, 39, 10], [42, 13, 44], [50, 21, 52, 23], [31]]
STEPS = 8
NEVER = frozenset([-1])
MASKS = torch.stack(
    [
        torch.zeros(LAYERS, HEADS, dtype=torch.bool),
        torch.ones(LAYERS, HEADS, dtype=torch.bool),
        torch.rand(LAYERS, HEADS, generator=torch.Generator().manual_seed(0)) < 0.5,
        torch.rand(LAYERS, HEADS, generator=torch.Generator().manual_seed(1)) < 0.3,
    ]
)


@pytest.fixture(params=["llama", "gemma3_text"])
def eager(request):
    """The runs soon pass Gemma's window."""
    return eager_model(request.param)


def record(model, prompts, eos_id=-1):
    return record_greedy(model, prompts, max_new_tokens=STEPS, eos_id=eos_id, pad_id=0)


def run(model, recipient, donor, site, steps, stop_ids=NEVER, most=STEPS):
    return patched_greedy(
        model, recipient, donor, site, MASKS, steps, max_new_tokens=most, stop_ids=stop_ids
    )


def slow_steps(model, prompt, count):
    """Greedy tokens, and the last position's rows and mixed values at every step."""
    tokens, taps = list(prompt), []
    for _ in range(count):
        tap = Tap(torch.tensor([[len(tokens) - 1]]))
        logits = model(torch.tensor([tokens]), tap=tap).logits
        taps.append(tap)
        tokens.append(int(logits[0, -1].argmax()))
    return tokens[len(prompt) :], taps


def slow_patched(model, prompt, donor_taps, site, mask, steps):
    """Every step forwards the whole sequence with all patches so far at their positions."""
    tokens = list(prompt)
    for step in range(STEPS):
        patched = [s for s in range(step + 1) if s in steps and s < len(donor_taps)]
        queries = torch.tensor([[len(prompt) - 1 + s for s in patched] or [-1]])
        where = mask.expand(1, queries.shape[1], LAYERS, HEADS)
        donor = {}
        for layer in range(LAYERS):
            if site == "pattern":
                width = len(tokens)
                parts = [donor_taps[s].record[layer].rows for s in patched]
                parts = [torch.nn.functional.pad(p, (0, width - p.shape[-1])) for p in parts]
            else:
                parts = [donor_taps[s].record[layer].mixed for s in patched]
            donor[layer] = torch.cat(parts, 2) if parts else None
        interventions = (Intervention(site, where, donor),) if patched else ()
        tap = Tap(queries, interventions=interventions, recording=False)
        logits = model(torch.tensor([tokens]), tap=tap).logits
        tokens.append(int(logits[0, -1].argmax()))
    return tokens[len(prompt) :]


def test_recorded_run_equals_a_run_alone(tapped):
    for prompt, found in zip(PROMPTS, record(tapped, PROMPTS), strict=True):
        tokens, taps = slow_steps(tapped, prompt, STEPS)
        assert list(found.tokens) == tokens
        for step, tap in enumerate(taps):
            for layer in range(LAYERS):
                expected = tap.record[layer]
                for site, value in (("pattern", expected.rows), ("output", expected.mixed)):
                    torch.testing.assert_close(
                        found.donors(site, step)[layer], value, atol=2e-5, rtol=1e-4
                    )


@pytest.mark.parametrize("site", ["pattern", "output"])
@pytest.mark.parametrize("steps", [range(0, STEPS), range(0, 3), range(2, 6)])
def test_patched_runs_equal_runs_without_cache(tapped, site, steps):
    recipients, donors = record(tapped, PROMPTS), record(tapped, OTHERS)
    changed = 0
    for prompt, other, recipient, donor in zip(PROMPTS, OTHERS, recipients, donors, strict=True):
        _, taps = slow_steps(tapped, other, STEPS)
        found = run(tapped, recipient, donor, site, steps)
        for mask, tokens in zip(MASKS, found, strict=True):
            assert tokens == slow_patched(tapped, prompt, taps, site, mask, steps)
            changed += tokens != list(recipient.tokens)
        assert found[0] == list(recipient.tokens)  # no head, no change
    assert changed > 2


@pytest.mark.parametrize("site", ["pattern", "output"])
def test_identity_patch_changes_nothing(tapped, site):
    for recorded in record(tapped, PROMPTS):
        for tokens in run(tapped, recorded, recorded, site, range(1, STEPS)):
            assert tokens == list(recorded.tokens)


def test_runs_end_with_the_end_of_sequence(tapped):
    eos = record(tapped, PROMPTS)[0].tokens[3]
    for plain, found in zip(record(tapped, PROMPTS), record(tapped, PROMPTS, eos), strict=True):
        stop = plain.tokens.index(eos) + 1 if eos in plain.tokens else STEPS
        assert found.tokens == plain.tokens[:stop]
        assert len(found.pattern) == stop
        assert found.cache[0][0].shape[2] == len(found.prompt) + stop - 1


def test_patched_runs_stop_at_any_stop(tapped):
    recipient, donor = record(tapped, PROMPTS[:1])[0], record(tapped, OTHERS[:1])[0]
    free = run(tapped, recipient, donor, "output", range(0, STEPS))
    stops = frozenset([free[1][4], free[2][2]])
    for tokens, whole in zip(
        run(tapped, recipient, donor, "output", range(0, STEPS), stops), free, strict=True
    ):
        ends = [i for i, token in enumerate(whole) if token in stops]
        assert tokens == whole[: ends[0] + 1 if ends else STEPS]


def test_recipient_that_ended_before_the_first_step_stays_as_it_is(tapped):
    recipient, donor = record(tapped, PROMPTS[:1])[0], record(tapped, OTHERS[:1])[0]
    stop = frozenset([recipient.tokens[1]])
    ended = list(recipient.tokens[: recipient.tokens.index(recipient.tokens[1]) + 1])
    assert run(tapped, recipient, donor, "output", range(4, STEPS), stop) == [ended] * len(MASKS)
    assert run(tapped, recipient, donor, "output", range(0)) == [list(recipient.tokens)] * 4


def test_nothing_is_patched_beyond_the_donor_s_end(tapped):
    recipient, donor = record(tapped, PROMPTS[:1])[0], record(tapped, OTHERS[:1])[0]
    short = dataclasses.replace(donor, tokens=donor.tokens[:2])
    assert run(tapped, recipient, short, "output", range(0, STEPS)) == run(
        tapped, recipient, donor, "output", range(0, 2)
    )


def test_prompts_of_unequal_length_are_refused(tapped):
    one, two = record(tapped, PROMPTS[:2])
    with pytest.raises(ValueError, match="equal length"):
        run(tapped, one, two, "output", range(0, 2))
