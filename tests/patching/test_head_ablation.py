"""Heads ablated at decisions and their nulls, against one hooked pass a head and example."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from mechdistill.patching.ablation import ForcedTrace, ablate, mean_mixed
from mechdistill.patching.conditions import head_masks, heads_of
from mechdistill.patching.head_ablation import COLUMNS, Options, ablate_heads
from mechdistill.patching.null_events import (
    EVENTS,
    Matched,
    Reading,
    matched_tokens,
    read_matched,
    shuffled_events,
)
from mechdistill.traces.decision_events import FAMILIES, KINDS

from .made import HEADS, LAYERS, make_trace

OPTIONS = Options(draws=2, seed=0, pad_id=0, batch_size=2, branches_per_pass=64)
PROMPT, LENGTH = 9, 14


def trace(name: str, split: str, seed: int):
    made = make_trace(name, PROMPT, LENGTH, seed=seed)  # its answer begins at token 21
    return dataclasses.replace(made, split=split)


@pytest.fixture(scope="module")
def traces():
    notes = [trace(name, "patching", i) for i, name in enumerate("abc")]
    return [*notes, *(trace(name, "ranking", 7 + i) for i, name in enumerate("xy"))]


@pytest.fixture(scope="module")
def events(traces):
    rows = []
    for number, note in enumerate(traces):
        for kind, query, repeat in (("region", 10, 0), ("region", 12, 1), ("within", 12, 0)):
            target, foils = 5 + number, np.array([20 + number, 30])
            row = (note.example, note.split, kind, "reasoning", "label", query)
            rows.append((*row, target, foils, repeat))
    frame = pd.DataFrame(rows, columns=list(EVENTS))
    return frame.drop(frame.index[(frame["example"] == "c") & (frame["kind"] == "within")])


@pytest.fixture(scope="module")
def table(model, traces, events):
    return ablate_heads(
        model, traces, events, split="patching", reference="ranking", options=OPTIONS
    )


def test_a_row_for_every_head_example_kind_and_null(table) -> None:
    assert tuple(table) == COLUMNS
    cells = table.groupby(["kind", "null"])["example"].unique().map(sorted).to_dict()
    assert cells[("region", "")] == ["a", "b", "c"]
    assert cells[("within", "")] == ["a", "b"]  # c has no such event
    assert set(table["kind"]) == {"region", "within"}  # others have none, in either split
    assert len(table) == LAYERS * HEADS * (3 * 3 + 3 * 2)
    assert (table.loc[table["null"] == "", "decisions"] == 1).all()  # repeats are left out


@pytest.mark.parametrize(("kind", "query"), [("region", 10), ("within", 12)])
def test_effects_are_those_of_ablation_by_the_reference_mean(
    table, model, traces, events, kind, query
) -> None:
    donors = [ForcedTrace(t.tokens, [Reading(query, 0, (1,))]) for t in traces[3:]]
    means = mean_mixed(model, donors, pad_id=0)
    masks = head_masks([frozenset([head]) for head in heads_of(LAYERS, HEADS)], LAYERS, HEADS)
    for number, note in enumerate(traces[:2]):
        own = ForcedTrace(note.tokens, [Reading(query, 5 + number, (20 + number, 30))])
        margins = ablate(model, [own], means, masks, pad_id=0, branches_per_pass=9)[0].numpy()
        rows = table.query("kind == @kind and null == '' and example == @note.example")
        assert rows["effect"].to_numpy() == pytest.approx(margins[0] - margins[1:], abs=2e-5)
        assert rows["margin"].to_numpy() == pytest.approx(margins[0], abs=2e-5)


def test_attribution_points_where_ablation_goes(table) -> None:
    own = table[table["null"] == ""]
    assert np.corrcoef(own["effect"], own["attribution"])[0, 1] > 0.3
    assert table.loc[table["null"] != "", "attribution"].isna().all()


def test_shuffled_events_are_read_at_the_same_position_with_tokens_of_others(events) -> None:
    own = events[(events["kind"] == "region") & (events["split"] == "patching")]
    first = own[own["repeat"] == 0]
    found = shuffled_events(first, draws=2, seed=0)
    assert sorted(r.target for r in found["a", 10]) == [6, 7]
    assert all(reading.query == 10 for reading in found["a", 10])
    assert len(shuffled_events(first, draws=1, seed=0)["a", 10]) == 1
    other_form = first.assign(form=["region", "label", "label"])
    assert shuffled_events(other_form, draws=2, seed=0)["a", 10] == []
    assert shuffled_events(first, draws=2, seed=0) == found


def test_matched_tokens_are_of_the_segment_and_decide_nothing(traces) -> None:
    note = traces[0]
    events = [Reading(10, 5, (1, 2, 3)), Reading(12, 6, (1,))]
    found = matched_tokens(note, "reasoning", [10, 12, 13], events, seed=0)
    assert [place.rivals for place in found] == [3, 1]
    places = {place.query for place in found}
    assert len(places) == 2 and places <= set(range(8, 20)) - {10, 12, 13}
    assert places <= {p.query for p in matched_tokens(note, "reasoning", [10], events * 9, seed=0)}
    answer = matched_tokens(note, "answer", [20], events, seed=0)
    assert {place.query for place in answer} == {21}
    assert matched_tokens(note, "answer", [20, 21], events, seed=0) == []


def test_a_matched_token_is_read_against_the_likeliest_others(model, traces) -> None:
    places = [[Matched(11, 3)], [Matched(14, 1), Matched(9, 2)], [Matched(8, 500)]]
    given = list(zip(traces[:3], places))
    found = read_matched(model, given, pad_id=0, batch_size=2)
    for (note, asked), read in zip(given, found):
        for place, reading in zip(asked, read):
            with torch.no_grad():
                logits = model(torch.tensor([note.tokens])).logits[0, place.query]
            taken = note.tokens[place.query + 1]
            order = [t for t in logits.argsort(descending=True).tolist() if t != taken]
            assert (reading.query, reading.target) == (place.query, taken)
            assert list(reading.foils) == order[: place.rivals]


def test_without_events_there_are_no_rows(model, traces, events) -> None:
    for kept in (events[:0], events[events["split"] == "patching"]):
        table = ablate_heads(
            model, traces, kept, split="patching", reference="ranking", options=OPTIONS
        )
        assert tuple(table) == COLUMNS and table.empty


def test_kinds_are_those_of_decision_events() -> None:
    assert {kind for kind, _ in FAMILIES} == set(KINDS)
