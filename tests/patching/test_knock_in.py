"""Outputs of one note's decision in another's context, against eager runs with hooks."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from mechdistill.data.labels import Label, LabelSpace, Region
from mechdistill.patching.ablation import ForcedTrace
from mechdistill.patching.conditions import head_masks, heads_of
from mechdistill.patching.donor_pairs import EVENTS, donor_pairs, first_decisions
from mechdistill.patching.head_sets import halves, rank_heads
from mechdistill.patching.knock_in import Recipient, knock_in, outputs_at
from mechdistill.patching.knock_in_sweep import COLUMNS, PAIRS, SAME_WAY, knock_in_sets
from mechdistill.patching.null_events import Reading

from .made import HEADS, LAYERS, make_trace

ALL = frozenset(heads_of(LAYERS, HEADS))
SETS = [frozenset([(0, 1), (2, 3)]), frozenset([(1, 0)]), ALL]
MASKS = head_masks(SETS, LAYERS, HEADS)
FAMILY = ("within", "reasoning")
TOKENS = {"X1.0": 20, "X1.1": 21, "Y2.0": 22}
SPACE = LabelSpace(
    regions=(Region("X1", "ex", ()), Region("Y2", "why", ())),
    labels=tuple(Label(code, code, code[:2], "", "") for code in TOKENS),
    never_gold=(),
    source="test",
)


@pytest.fixture(scope="module")
def eager(model):
    slow = copy.deepcopy(model)
    slow.set_attn_implementation("eager")
    return slow


def slow_outputs(eager, tokens, query):
    """Input of each output projection at the query position, from a whole pass."""
    kept = []
    hooks = [
        block.self_attn.o_proj.register_forward_pre_hook(
            lambda module, given: kept.append(given[0][0, query].clone())
        )
        for block in eager.model.layers
    ]
    with torch.no_grad():
        logits = eager(torch.tensor([tokens])).logits[0, query]
    for hook in hooks:
        hook.remove()
    return kept, logits


def slow_margin(eager, tokens, reading, donor, heads):
    """The whole trace again; the chosen heads' columns replaced at one position."""
    hooks = []
    for layer, block in enumerate(eager.model.layers):

        def replace(module, given, layer=layer):
            mixed = given[0].clone()
            width = mixed.shape[-1] // HEADS
            for of_layer, head in heads:
                if of_layer == layer:
                    columns = slice(head * width, (head + 1) * width)
                    mixed[0, reading.query, columns] = donor[layer][columns]
            return (mixed,)

        hooks.append(block.self_attn.o_proj.register_forward_pre_hook(replace))
    with torch.no_grad():
        logits = eager(torch.tensor([tokens])).logits[0, reading.query]
    for hook in hooks:
        hook.remove()
    return float(logits[reading.target] - max(logits[foil] for foil in reading.foils))


@pytest.fixture(scope="module")
def runs():
    """Traces of unequal length with two readings each at one position."""
    made = [make_trace(name, 8 + 2 * i, 12, seed=i) for i, name in enumerate("abc")]
    own = [[Reading(q, 20, (21,)), Reading(q, 22, (20, 21))] for q in (12, 11, 19)]
    return [ForcedTrace(t.tokens, readings) for t, readings in zip(made, own, strict=True)]


@pytest.mark.parametrize("together", [2, 5, 64])
def test_margins_are_those_of_whole_eager_runs(model, eager, runs, together) -> None:
    outputs = outputs_at(model, runs, pad_id=0)
    donors = [[1, 2], [0], [1]]
    found = knock_in(
        model,
        [Recipient(run, [outputs[d] for d in own]) for run, own in zip(runs, donors, strict=True)],
        MASKS,
        pad_id=0,
        branches_per_pass=together,
    )
    for run, own, margins in zip(runs, donors, found, strict=True):
        assert margins.shape == (len(own), 2, 1 + len(SETS))
        for turn, d in enumerate(own):
            donor, _ = slow_outputs(eager, runs[d].tokens, runs[d].decisions[0].query)
            for i, reading in enumerate(run.decisions):
                expected = [
                    slow_margin(eager, run.tokens, reading, donor, heads)
                    for heads in (frozenset(), *SETS)
                ]
                assert margins[turn, i].tolist() == pytest.approx(expected, abs=2e-4)
    assert (found[0][0, :, 1:] - found[0][0, :, :1]).abs().min() > 1e-3


def test_own_outputs_change_nothing(model, runs) -> None:
    outputs = outputs_at(model, runs, pad_id=0)
    own = [Recipient(run, [given]) for run, given in zip(runs, outputs, strict=True)]
    for margins in knock_in(model, own, MASKS, pad_id=0, branches_per_pass=16):
        torch.testing.assert_close(margins[0], margins[0, :, :1].expand(-1, 4), atol=2e-5, rtol=0)


def test_all_heads_are_the_attention_blocks_output(model, eager, runs) -> None:
    """The donor's whole attention output in place of the recipient's, layer by layer."""
    recipient, donor = runs[0], runs[1]
    kept, _ = slow_outputs(eager, donor.tokens, donor.decisions[0].query)
    query = recipient.decisions[0].query
    hooks = []
    for layer, block in enumerate(eager.model.layers):

        def replace(module, given, output, layer=layer):
            changed = output[0].clone()
            changed[0, query] = module.o_proj(kept[layer])
            return (changed, *output[1:])

        hooks.append(block.self_attn.register_forward_hook(replace))
    with torch.no_grad():
        logits = eager(torch.tensor([recipient.tokens])).logits[0, query]
    for hook in hooks:
        hook.remove()
    outputs = outputs_at(model, [donor], pad_id=0)
    (margins,) = knock_in(
        model, [Recipient(recipient, outputs)], MASKS, pad_id=0, branches_per_pass=9
    )
    assert float(margins[0, 0, -1]) == pytest.approx(float(logits[20] - logits[21]), abs=2e-4)


QUERY = 12
PICKS = dict(zip("abcdefgh", ["X1.0", "X1.1", "Y2.0", "X1.0"] * 2, strict=True))


@pytest.fixture(scope="module")
def traces():
    return [make_trace(name, 9, 14, seed=i) for i, name in enumerate(PICKS)]


def event(example, kind, picked, query=QUERY, repeat=0):
    """All other codes are left, of whatever region."""
    others = sorted(set(TOKENS) - {picked})
    if kind == "region":
        others = [code for code in others if code[:2] != picked[:2]]
    foils = np.array(sorted(TOKENS[code] for code in others))
    own = (example, "patching", kind, "reasoning", "label", query)
    return (*own, TOKENS[picked], foils, picked, picked[:2], np.array(others), repeat)


@pytest.fixture(scope="module")
def events():
    rows = [event(name, "within", picked) for name, picked in PICKS.items()]
    rows += [event("a", "within", "Y2.0", 15), event("b", "within", "Y2.0", 3, repeat=1)]
    return pd.DataFrame(rows, columns=list(EVENTS))


def test_only_the_first_decision_counts(events) -> None:
    found = first_decisions(events, FAMILY, list("ab"), SPACE)
    assert [(own.example, own.reading.query, own.reading.target) for own in found] == [
        ("a", QUERY, 20),
        ("b", QUERY, 21),
    ]
    assert found[0].regions == {"X1", "Y2"}


def test_donors_decide_otherwise_and_could_be_followed(events) -> None:
    decisions = first_decisions(events, FAMILY, list("abcd"), SPACE)
    pairs = donor_pairs(decisions, FAMILY, draws=9, seed=0)
    found = {(pair.recipient.example, pair.donor.example) for pair in pairs}
    every = {(one, other) for one in "abcd" for other in "abcd" if one != other}
    assert found == every - {("a", "d"), ("d", "a")}
    assert {pair.recipient.example for pair in pairs if pair.alike} == {"a", "d"}
    assert len(donor_pairs(decisions, FAMILY, draws=1, seed=0)) == 4
    lone = [
        dataclasses.replace(own, reading=Reading(QUERY, 20 + i, (5,)))
        for i, own in enumerate(decisions)
    ]
    assert donor_pairs(lone, FAMILY, draws=9, seed=0) == []


def test_a_region_is_carried_over_by_notes_of_other_regions_alone() -> None:
    rows = [event(name, "region", PICKS[name]) for name in "abc"]
    family = ("region", "reasoning")
    decisions = first_decisions(pd.DataFrame(rows, columns=list(EVENTS)), family, "abc", SPACE)
    pairs = donor_pairs(decisions, family, draws=9, seed=0)
    assert {(p.recipient.example, p.donor.example) for p in pairs} == {
        *(("a", "c"), ("b", "c"), ("c", "a"), ("c", "b")),
    }


def single() -> pd.DataFrame:
    rows = [
        (*FAMILY, null, layer, head, example, (layer * HEADS + head) * (null == ""))
        for example in PICKS
        for null in ("", "other_token")
        for layer, head in sorted(ALL)
    ]
    columns = ["kind", "segment", "null", "layer", "head", "example", "effect"]
    return pd.DataFrame(rows, columns=columns)


@pytest.fixture(scope="module")
def options():
    return {
        **{"split": "patching", "bins": [1, 3], "draws": 2, "donors": 9, "seed": 0},
        **{"pad_id": 0, "branches_per_pass": 16},
    }


def test_rows_are_those_of_single_pairs(model, eager, traces, events, options) -> None:
    rows, counts = knock_in_sets(model, traces, events, single(), SPACE, **options)
    found_on, tested = halves(list(PICKS), 0)
    assert tuple(rows) == COLUMNS and tuple(counts) == PAIRS and len(counts) == 6
    assert set(rows["example"]) | set(rows["donor"]) <= set(tested)
    tokens = {trace.example: trace.tokens for trace in traces}
    top = frozenset(rank_heads(single(), found_on, FAMILY)[:3])
    pairs = donor_pairs(first_decisions(events, FAMILY, tested, SPACE), FAMILY, draws=9, seed=0)
    count = counts.set_index(["kind", "segment"]).loc[FAMILY]
    assert (count["notes"], count["pairs"]) == (4, len(pairs))
    chosen = rows.query("ranking == 'top' and bin == 3").set_index(["example", "donor", "null"])
    for pair in pairs:
        names = pair.recipient.example, pair.donor.example
        at = {first.example: first.reading.query for first in (pair.recipient, pair.donor)}
        ways = {"": pair.donor} | ({SAME_WAY: pair.alike} if pair.alike else {})
        target, own = pair.donor.reading.target, pair.recipient.reading.target
        two = Reading(at[names[0]], target, (own,))
        others = Reading(at[names[0]], target, tuple({*TOKENS.values()} - {target}))
        donor, logits = slow_outputs(eager, tokens[names[1]], at[names[1]])
        for null, source in ways.items():
            given, _ = slow_outputs(eager, tokens[source.example], source.reading.query)
            row = chosen.loc[(*names, null)]
            expected = [
                slow_margin(eager, tokens[names[0]], two, given, frozenset()),
                slow_margin(eager, tokens[names[0]], two, donor, ALL),
                float(logits[target] - logits[own]),
                slow_margin(eager, tokens[names[0]], two, given, top),
            ]
            assert row[["start", "end", "donor_margin", "patched"]].tolist() == pytest.approx(
                expected, abs=3e-4
            )
            carried = slow_margin(eager, tokens[names[0]], others, given, top) > 0
            carried_all = slow_margin(eager, tokens[names[0]], others, donor, ALL) > 0
            assert (row["carried"], row["carried_all"]) == (carried, carried_all)


def test_without_pairs_there_are_counts_and_no_rows(model, traces, events, options) -> None:
    alike = events[events["code"] == "X1.0"]
    rows, counts = knock_in_sets(model, traces, alike, single(), SPACE, **options)
    assert rows.empty and tuple(rows) == COLUMNS
    assert counts["pairs"].sum() == 0 and counts["notes"].sum() > 0
