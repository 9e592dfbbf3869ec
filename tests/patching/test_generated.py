"""The sweep over written runs, and their scoring, with a stand-in for parser and metric."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from mechdistill.models.recorded import patched_greedy
from mechdistill.patching.conditions import Condition, head_masks, heads_of
from mechdistill.patching.generated import patch_generated
from mechdistill.patching.generated_scores import generated_table
from mechdistill.patching.generated_sweep import patched_steps, record_sides, sweep_generated
from mechdistill.patching.pairs import Pair

from .made import make_trace, random_tokens

SETS = [frozenset(heads_of(3, 4)), frozenset([(1, 1), (2, 0)])]
MASKS = head_masks(SETS, 3, 4)
STOPS = frozenset([2])


def parse(example, tokens):
    """Every run is early for four steps and refines at step 5, if it is long enough."""
    trace = make_trace(example, 8, len(tokens), refine=(12,) if len(tokens) > 6 else ())
    return dataclasses.replace(trace, tokens=(*trace.tokens[:8], *tokens))


@pytest.fixture
def pair():
    """The last word of the prompts is the same, as it is in twins of a note."""
    trace = make_trace("a", 8, 4, seed=5)
    return Pair(trace, "K1", (*random_tokens(7, 77), trace.tokens[7]))


@pytest.fixture
def sides(model, pair):
    return record_sides(model, [pair], parse, max_new_tokens=10, eos_id=2, pad_id=0)


def sweep(model, sides, phase, masks=MASKS, batch_size=10):
    options = {"max_new_tokens": 10, "stop_ids": STOPS, "batch_size": batch_size}
    return list(sweep_generated(model, *sides["a"], phase, masks, **options))


def test_windows_are_those_of_the_donor(pair):
    first = pair.trace.prompt_length - 1
    trace = make_trace("a", 8, 20, refine=(15, 18), early=5)
    assert patched_steps(trace, 1) == range(0, 5)
    assert patched_steps(trace, 2).start + first == 15
    # the last patched step writes the last token of the reasoning
    assert patched_steps(trace, 2).stop + first + 1 == trace.reasoning_end
    bare = dataclasses.replace(trace, refine=())
    assert patched_steps(bare, 2).start + first + 1 == bare.late_start
    assert not patched_steps(dataclasses.replace(bare, late_start=-1), 2)


@pytest.mark.parametrize("phase", [1, 2])
def test_every_condition_is_run_once(model, sides, phase):
    runs = sweep(model, sides, phase)
    keys = [(r.site, r.direction, r.condition) for r in runs]
    assert len(keys) == len(set(keys)) == 8


def test_runs_are_those_of_their_donor_and_recipient(model, sides):
    clean, corrupted = sides["a"]
    for run in sweep(model, sides, 1):
        donor, recipient = (clean, corrupted) if run.direction == "denoise" else (corrupted, clean)
        expected = patched_greedy(
            model,
            recipient.run,
            donor.run,
            run.site,
            MASKS[run.condition][None],
            patched_steps(donor.trace, 1),
            max_new_tokens=10,
            stop_ids=STOPS,
        )
        assert list(run.tokens) == expected[0]


def test_batch_size_changes_nothing(model, sides):
    one = {(r.site, r.direction, r.condition): r.tokens for r in sweep(model, sides, 2)}
    two = {(r.site, r.direction, r.condition): r.tokens for r in sweep(model, sides, 2, MASKS, 1)}
    assert one == two


def test_output_of_all_heads_carries_the_early_words_over(model, sides):
    """Then nothing of the recipient's prompt is left in the patched steps."""
    clean, corrupted = sides["a"]
    assert clean.run.tokens[:4] != corrupted.run.tokens[:4]
    for run in sweep(model, sides, 1):
        if run.site == "output" and run.condition == 0:
            donor = clean if run.direction == "denoise" else corrupted
            assert run.tokens[:4] == donor.run.tokens[:4]


def test_table_scores_each_distinct_text_once_and_keeps_every_condition(model, sides):
    runs = {"a": sweep(model, sides, 2)}
    planned = [
        Condition("all", 12, 0, SETS[0]),
        Condition("top", 2, 0, SETS[1]),
        Condition("random", 2, 3, SETS[1]),
    ]
    seen = []

    def score(traces, donors):
        seen.extend((t.tokens, d.tokens) for t, d in zip(traces, donors, strict=True))
        return np.array([float(sum(t.tokens[8:])) for t in traces])

    table = generated_table(runs, sides, planned, SETS, 2, "K2", {"confusion": score}, parse)
    assert len(table) == 2 * 2 * 3  # sites, directions, conditions
    clean, corrupted = sides["a"]
    assert (table["clean"] == sum(clean.run.tokens)).all()
    assert (table["corrupted"] == sum(corrupted.run.tokens)).all()
    for run in runs["a"]:
        rows = table[(table["site"] == run.site) & (table["direction"] == run.direction)]
        names = [c.ranking for c in planned if c.heads == SETS[run.condition]]
        values = rows[rows["ranking"].isin(names)]["patched"]
        assert len(values) == len(names)
        assert (values == sum(run.tokens)).all()
    assert len({(r.direction, r.tokens) for r in runs["a"]}) == len(seen) - 2
    assert (clean.trace.tokens, clean.trace.tokens) in seen
    assert (corrupted.trace.tokens, clean.trace.tokens) in seen


def test_pairs_become_a_table_of_every_metric(model, pair):
    planned = [Condition("all", 12, 0, SETS[0]), Condition("top", 2, 0, SETS[1])]
    reader = SimpleNamespace(
        parse=parse,
        early_tokens=6,
        stops=lambda phase: STOPS,
        tokenizer=SimpleNamespace(eos_token_id=2, pad_token_id=0),
        scores=lambda phase: {
            "length": lambda traces, donors: np.array([len(t.tokens) - 8.0 for t in traces]),
            "nothing": lambda traces, donors: np.zeros(len(traces)),
        },
    )
    table = patch_generated(model, [pair], 1, planned, reader, max_new_tokens=10, batch_size=3)
    assert len(table) == 2 * 2 * 2 * 2
    assert set(table["twin"]) == {"K1"}
    lengths = table[table["metric"] == "length"]
    assert (lengths["patched"] <= 6).all()
    assert (lengths["clean"] <= 10).all()
    assert (table[table["metric"] == "nothing"]["patched"] == 0).all()
