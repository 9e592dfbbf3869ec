"""Attention at events, against rows that an eager run returns."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from mechdistill.data.examples import example_of
from mechdistill.data.tokenizer import build_tokenizer, encode_trace
from mechdistill.data.world import WorldSettings, draw_case
from mechdistill.heads.event_places import PLACES, PromptPlaces
from mechdistill.models.loading import build_model
from mechdistill.patching.event_attention import (
    COLUMNS,
    OTHER,
    Look,
    Position,
    attend_at_events,
    looks_at,
    masses,
)
from mechdistill.traces.event_table import event_table
from mechdistill.traces.parse import parse_trace
from tests.small_space import small_model, small_space

from .made import HEADS, LAYERS, VOCABULARY, make_trace

REGION, DEPARTURE = ("region", "reasoning"), ("departure", "answer")


def made_places(length: int) -> PromptPlaces:
    return PromptPlaces(length, {"X": [4, 5], "Y": [6]}, {"X": [2]}, [0, 1, 2, 3], [0])


@pytest.mark.parametrize("batch_size", [1, 2])
def test_masses_are_sums_of_eager_rows(model, batch_size) -> None:
    slow = copy.deepcopy(model)
    slow.set_attn_implementation("eager")
    traces = [make_trace("a", 9, 12, seed=1), make_trace("b", 13, 10, seed=2)]
    looks = [
        (
            traces[0],
            [
                Look(REGION, "", (Position(12, "X", (10,)), Position(15, "Y"))),
                Look(DEPARTURE, OTHER, (Position(15, "X", (11, 12)),)),
            ],
        ),
        (traces[1], [Look(REGION, "", (Position(14, "Y"),))]),
    ]
    heads = {REGION: [(0, 1), (LAYERS - 1, HEADS - 1)], DEPARTURE: [(1, 0), (1, 3)]}
    places = {trace.example: made_places(trace.prompt_length) for trace in traces}
    rows = masses(model, looks, places, heads, pad_id=0, batch_size=batch_size)
    table = pd.DataFrame(list(rows), columns=list(COLUMNS))
    assert len(table) == len(PLACES) * (2 + 2 + 2)
    found = table.set_index(["kind", "null", "example", "layer", "head", "place"])
    for trace, own in looks:
        with torch.no_grad():
            attention = slow(torch.tensor([trace.tokens]), output_attentions=True).attentions
        for look, place in itertools.product(own, PLACES):
            for layer, head in heads[look.family]:
                mass, even = [], []
                for at in look.positions:
                    numbers = places[trace.example].at(at.query, at.region, at.near_miss)
                    keys = [k for k, number in enumerate(numbers) if PLACES[number] == place]
                    mass.append(float(attention[layer][0, head, at.query, keys].sum()))
                    even.append(len(keys) / (at.query + 1))
                row = found.loc[(look.family[0], look.null, trace.example, layer, head, place)]
                assert row["mass"] == pytest.approx(np.mean(mass), abs=1e-5)
                assert row["uniform"] == pytest.approx(np.mean(even), abs=1e-6)
                assert row["decisions"] == len(look.positions)


def test_an_even_spread_is_over_the_window_of_each_layer() -> None:
    model = build_model(
        {
            **{"family": "gemma3_text", "hidden_size": 32, "layers": 2, "heads": 4, "kv_heads": 2},
            **{"head_dim": 8, "intermediate_size": 48, "rope_theta": 100.0, "sliding_window": 6},
            **{"full_attention_every": 2, "sliding_rope_theta": 100.0},
        },
        **{"vocab_size": VOCABULARY, "pad_id": 0, "bos_id": 1, "eos_id": 2},
        **{"max_positions": 64, "seed": 0},
    ).eval()
    traces = [make_trace("a", 9, 12, seed=1), make_trace("b", 13, 10, seed=2)]
    looks = [(trace, [Look(REGION, "", (Position(12, "X"),))]) for trace in traces]
    places = {"a": made_places(9), "b": made_places(13)}
    rows = masses(model, looks, places, {REGION: [(0, 0), (1, 0)]}, pad_id=0, batch_size=2)
    found = pd.DataFrame(list(rows), columns=list(COLUMNS)).set_index(["example", "layer", "place"])
    windowed, whole = (found.loc["a", layer]["uniform"] for layer in (0, 1))
    assert windowed["reasoning"] == pytest.approx(4 / 6)  # 7 and 8 are prompt, 9 to 12 the trace
    assert windowed["chosen_region"] == 0
    assert whole["reasoning"] == pytest.approx(4 / 13)
    assert whole["chosen_region"] == pytest.approx(2 / 13)
    assert found["uniform"].groupby(["example", "layer"]).sum().to_numpy() == pytest.approx(1)


def test_matched_tokens_before_the_near_miss_are_left_out() -> None:
    trace = make_trace("a", 9, 30)
    row = {"example": "a", "split": "patching", "kind": "departure", "segment": "reasoning"}
    row |= {"form": "label", "target": 5, "foils": (6, 7), "region": "X", "repeat": 0}
    events = pd.DataFrame([row | {"query": q, "earlier": (20, 21)} for q in range(22, 36)])
    ((_, looks),) = looks_at([trace], events, [("departure", "reasoning")], 0)
    at = {look.null: look.positions for look in looks}
    assert [position.query for position in at[""]] == list(range(22, 36))
    assert all(position.query >= 21 for position in at.get(OTHER, ()))
    before = events.assign(earlier=[()] * len(events))
    ((_, looks),) = looks_at([trace], before, [("departure", "reasoning")], 0)
    assert any(position.query < 21 for position in looks[1].positions)


class TestStudy:
    """Notes of the small world with their templated reasoning, and a random model."""

    @pytest.fixture(scope="class")
    def world(self):
        space = small_space()
        settings = WorldSettings(seed=0, groups_in_context=4, problems_min=1, problems_max=2)
        rng = np.random.default_rng(0)
        examples = [
            example_of(draw_case(space, settings, split, rng), f"{split}{i}", split)
            for i, split in enumerate(["patching"] * 4 + ["ranking"])
        ]
        tokenizer = build_tokenizer(space)
        model = small_model(tokenizer)
        traces = [
            parse_trace(e, encode_trace(tokenizer, e.reference), tokenizer, space, 12)
            for e in examples
        ]
        events = event_table(model, traces, examples, tokenizer, space, batch_size=3)
        return space, examples, tokenizer, model, traces, events

    def attention(self, world, above, batch_size=3):
        space, examples, tokenizer, model, traces, events = world
        families = [("region", "reasoning"), ("within", "reasoning"), ("departure", "answer")]
        effects = pd.DataFrame(
            [
                (*family, layer, head, (layer, head) in above)
                for family in families
                for layer in range(2)
                for head in range(4)
            ],
            columns=["kind", "segment", "layer", "head", "above_null"],
        )
        return attend_at_events(
            model, traces, examples, events, effects, space, tokenizer,
            split="patching", seed=0, batch_size=batch_size,
        )  # fmt: skip

    def test_heads_that_count_are_read_on_the_notes_of_the_split(self, world) -> None:
        table = self.attention(world, {(0, 1), (1, 2)})
        assert tuple(table) == COLUMNS
        assert set(zip(table["layer"], table["head"])) == {(0, 1), (1, 2)}
        assert table["example"].str.startswith("patching").all()
        assert set(table["null"]) == {"", OTHER}
        events = world[-1]
        first = events[(events["split"] == "patching") & (events["repeat"] == 0)]
        for (kind, segment), own in table[table["null"] == ""].groupby(["kind", "segment"]):
            counted = own.drop_duplicates("example").set_index("example")["decisions"]
            there = first[(first["kind"] == kind) & (first["segment"] == segment)]
            assert counted.to_dict() == there["example"].value_counts().to_dict()
        whole = table.groupby(["kind", "segment", "null", "example", "layer", "head"])
        assert whole["mass"].sum().to_numpy() == pytest.approx(1, abs=1e-5)

    def test_near_misses_are_a_place_of_departures_alone(self, world) -> None:
        table = self.attention(world, {(0, 1)})
        assert set(table.loc[table["place"] == "near_miss", "kind"]) == {"departure"}
        at = table[(table["place"] == "near_miss") & (table["null"] == "")]
        assert (at["uniform"] > 0).all() and (at["mass"] > 0).all()

    def test_batches_change_nothing(self, world) -> None:
        one, other = (self.attention(world, {(0, 1), (1, 2)}, batch_size=n) for n in (1, 4))
        keys = list(COLUMNS[:8])
        one, other = (table.sort_values(keys, ignore_index=True) for table in (one, other))
        pd.testing.assert_frame_equal(one, other, atol=1e-6)

    def test_without_a_head_that_counts_the_table_is_empty(self, world) -> None:
        table = self.attention(world, set())
        assert table.empty and tuple(table) == COLUMNS
