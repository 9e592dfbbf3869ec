"""Sets of heads found on one half of the notes and ablated on the other."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from mechdistill.patching.ablation import ForcedTrace, ablate, mean_mixed
from mechdistill.patching.conditions import head_masks, heads_of
from mechdistill.patching.head_sets import COLUMNS, ablate_sets, halves, rank_heads
from mechdistill.patching.null_events import EVENTS, Reading

from .made import HEADS, LAYERS, make_trace

QUERY = 12
FAMILY = ("region", "reasoning")
ALL = heads_of(LAYERS, HEADS)


@pytest.fixture(scope="module")
def traces():
    named = [(name, "patching") for name in "abcd"] + [("x", "ranking"), ("y", "ranking")]
    made = [make_trace(name, 9, 14, seed=i) for i, (name, _) in enumerate(named)]
    return [
        dataclasses.replace(trace, split=split)
        for trace, (_, split) in zip(made, named, strict=True)
    ]


@pytest.fixture(scope="module")
def events(traces):
    rows = [
        (t.example, t.split, *FAMILY, "label", QUERY, 5 + i, np.array([20, 30]), 0)
        for i, t in enumerate(traces)
    ]
    return pd.DataFrame(rows, columns=list(EVENTS))


def single(values: dict[str, float]) -> pd.DataFrame:
    """Effects of heads: by example, as much more as their number is higher; one null has them."""
    rows = [
        (*FAMILY, null, layer, head, example, scale * (layer * HEADS + head))
        for example, scale in values.items()
        for null in ("", "other_token")
        for layer, head in ALL
        if null == "" or (layer, head) == (LAYERS - 1, HEADS - 1)
    ]
    columns = ["kind", "segment", "null", "layer", "head", "example", "effect"]
    return pd.DataFrame(rows, columns=columns)


def test_halves_are_disjoint_and_do_not_depend_on_the_order() -> None:
    found, tested = halves(list("abcde"), seed=0)
    assert (len(found), len(tested)) == (2, 3)
    assert sorted(found + tested) == list("abcde")
    assert halves(list("edcba"), seed=0) == (found, tested)
    assert halves([f"n{i}" for i in range(40)], 0) != halves([f"n{i}" for i in range(40)], 1)


def test_heads_are_ranked_by_what_exceeds_the_null_on_the_given_notes() -> None:
    ablation = single({"a": 1.0, "b": -1.0})
    ranked = rank_heads(ablation, ["a"], FAMILY)
    assert ranked[0] == (LAYERS - 1, HEADS - 2)  # the last head has as much of a null
    assert len(ranked) == len(ALL)
    assert rank_heads(ablation, ["b"], FAMILY)[0] == (0, 0)
    assert rank_heads(ablation, ["c"], FAMILY) == []


@pytest.fixture(scope="module")
def table(model, traces, events):
    return ablate_sets(
        model,
        traces,
        events,
        single({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}),
        split="patching",
        reference="ranking",
        bins=[1, 3],
        draws=2,
        seed=0,
        pad_id=0,
        branches_per_pass=16,
    )


def test_only_the_other_half_is_read_under_sets_and_their_complements(table, traces) -> None:
    _, tested = halves(list("abcd"), seed=0)
    assert tuple(table) == COLUMNS
    assert sorted(table["example"].unique()) == sorted(tested)
    cells = table.groupby(["mode", "ranking", "bin"]).size()
    assert cells["ablated", "top", 1] == 2 and cells["kept", "random", 3] == 2 * 2


@pytest.mark.parametrize("mode", ["ablated", "kept"])
def test_margins_are_those_of_ablation(table, model, traces, events, mode) -> None:
    ranked = rank_heads(single({"a": 1.0}), ["a"], FAMILY)
    top = frozenset(ranked[:3])
    heads = top if mode == "ablated" else frozenset(ALL) - top
    masks = head_masks([heads, frozenset(ALL)], LAYERS, HEADS)
    donors = [ForcedTrace(t.tokens, [Reading(QUERY, 5, (20,))]) for t in traces[4:]]
    means = mean_mixed(model, donors, pad_id=0)
    rows = table.query("mode == @mode and ranking == 'top' and bin == 3").set_index("example")
    for number, note in enumerate(traces[:4]):
        if note.example in rows.index:
            own = ForcedTrace(note.tokens, [Reading(QUERY, 5 + number, (20, 30))])
            found = ablate(model, [own], means, masks, pad_id=0, branches_per_pass=9)[0].tolist()
            expected = rows.loc[note.example, ["margin", "patched", "floor"]].tolist()
            assert found == pytest.approx(expected, abs=2e-5)
    assert (rows["patched"] - rows["margin"]).abs().max() > 1e-3


def test_without_decisions_there_are_no_rows(model, traces, events) -> None:
    options = {"bins": [1], "draws": 1, "seed": 0, "pad_id": 0, "branches_per_pass": 9}
    splits = {"split": "patching", "reference": "ranking"}
    empty = ablate_sets(model, traces, events[:0], single({"a": 1.0}), **splits, **options)
    assert tuple(empty) == COLUMNS and empty.empty
