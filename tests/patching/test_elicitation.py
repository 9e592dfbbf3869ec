"""What is read before a region is decided, on made events and planted directions."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from mechdistill.models.residuals import reading_residuals
from mechdistill.patching import region_probe
from mechdistill.patching.elicitation import ATTENTION, ablate_before_events, note_attention
from mechdistill.patching.eliciting_heads import effects_before, eliciting_sets
from mechdistill.patching.head_ablation import Options, ablate_heads
from mechdistill.patching.region_probe import predicted, probe_regions, residuals_at
from mechdistill.patching.undecided import COLUMNS, FAMILY, undecided, with_room
from mechdistill.traces.parse import Mention

from .made import HEADS, LAYERS, make_trace

SPACE = SimpleNamespace(label=lambda code: SimpleNamespace(region=code[0]))
OPTIONS = Options(draws=2, seed=0, pad_id=0, batch_size=2, branches_per_pass=64)
PROMPT = 9


@pytest.fixture(scope="module")
def traces():
    names = [*((n, "patching") for n in "abc"), *((n, "ranking") for n in "xy")]
    made = [
        dataclasses.replace(make_trace(name, PROMPT, 14, seed=i), split=split)
        for i, (name, split) in enumerate(names)
    ]
    mention = Mention("label", "R.1", 10, 11, "early", -1, "kept")
    return [*made[:2], dataclasses.replace(made[2], mentions=(mention,)), *made[3:]]


@pytest.fixture(scope="module")
def events(traces):
    rows = []
    for number, note in enumerate(traces):
        for query, repeat, region in ((12, 0, "R"), (15, 0, "S"), (17, 1, "S")):
            target, foils = 5 + number, np.array([20 + number, 30])
            row = (note.example, note.split, "region", "reasoning", "region", query)
            rows.append((*row, target, foils, repeat, region))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def test_room_ends_at_the_event_before_and_at_the_prompt(events, traces) -> None:
    found = undecided(events, traces, SPACE)
    assert len(found) == 10  # the repeats are no first events
    assert found["room"].tolist() == [12 - (PROMPT - 1), 15 - 13] * 5
    named = found[found["named"]]
    assert named[["example", "query"]].to_numpy().tolist() == [["c", 12]]
    assert len(with_room(found, 2)) == 9 and len(with_room(found, 3)) == 4


def test_at_the_event_itself_effects_are_those_of_ablate_heads(model, events, traces) -> None:
    found = undecided(events, traces, SPACE).assign(named=False)
    given = {"split": "patching", "reference": "ranking", "options": OPTIONS}
    own = ablate_before_events(model, traces, events, found, [0], **given)
    whole = ablate_heads(model, traces, events, families=(FAMILY,), **given)
    pd.testing.assert_frame_equal(own.drop(columns="offset"), whole[list(own)[1:]])


def test_tables_of_a_tiny_model(model, events, traces) -> None:
    found = undecided(events, traces, SPACE)
    given = {"split": "patching", "reference": "ranking", "options": OPTIONS}
    ablation = ablate_before_events(model, traces, events, found, [2, 4, 9], **given)
    own = ablation[ablation["null"] == ""].groupby(["offset", "example"])["decisions"].first()
    assert own.to_dict() == {
        **{(2, "a"): 2, (2, "b"): 2, (2, "c"): 1},
        **{(4, "a"): 1, (4, "b"): 1},
    }
    effects = effects_before(ablation, level=0.5, resamples=20, seed=0)
    assert len(effects) == 2 * LAYERS * HEADS
    counting = {2: {(0, 1), (2, 0)}, 4: set()}
    keys = zip(effects["offset"], effects["layer"], effects["head"])
    effects["above_null"] = [(a, b) in counting[offset] for offset, a, b in keys]
    at_events = effects[effects["offset"] == 2].assign(kind="region", segment="reasoning")
    at_events["above_null"] = (at_events["layer"] == 2) & (at_events["head"] < 2)
    notes = {name: range(1, 6) for name in "abc"}
    attention = note_attention(model, traces[:3], notes, found, [2, 4], pad_id=0, batch_size=2)
    assert tuple(attention) == ATTENTION
    sets = eliciting_sets(effects, at_events, attention, resamples=20, seed=0).set_index("offset")
    at_two = sets.loc[2]
    assert (at_two["eliciting"], at_two["own"], at_two["shared"]) == (2, 2, 1)
    assert at_two["expected"] == pytest.approx(4 / (LAYERS * HEADS))
    assert (at_two["depth"], at_two["own_depth"]) == (0.5, 1.0)
    rows = attention[(attention["offset"] == 2) & (attention["example"] == "c")]
    assert rows["uniform"].unique() == pytest.approx([5 / 14])
    assert np.isnan(sets.loc[4, "note_mass"]) and sets.loc[4, "notes"] == 2


def test_attention_on_the_note_is_that_of_eager_rows(model, events, traces) -> None:
    found = undecided(events, traces, SPACE)
    table = note_attention(model, traces[:1], {"a": [2, 3]}, found, [4], pad_id=0, batch_size=2)
    implementation = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            rows = model(torch.tensor([traces[0].tokens]), output_attentions=True).attentions
    finally:
        model.set_attn_implementation(implementation)
    slow = [float(rows[a][0, b, 8, 2:4].sum()) for a, b in zip(table["layer"], table["head"])]
    assert table["mass"].tolist() == pytest.approx(slow, abs=1e-5)


def test_residuals_are_those_of_a_plain_pass(model, traces) -> None:
    found = residuals_at(model, traces, [("b", 7), ("a", 9), ("b", 3)], pad_id=0, batch_size=2)
    with torch.no_grad(), reading_residuals(model) as stream:
        model(torch.tensor([traces[1].tokens]))
    slow = torch.stack([*stream.entering, stream.final])[:, 0, [7, 3]].transpose(0, 1)
    assert np.allclose(found[[0, 2]], slow.numpy(), atol=1e-5)


def test_a_probe_finds_a_planted_direction_and_not_a_shuffled_one() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(["R", "S", "T"], 60)
    directions = rng.normal(size=(3, 12))
    x = (directions.repeat(60, axis=0) + 0.3 * rng.normal(size=(180, 12))).astype(np.float32)
    train = np.arange(180) % 2 == 0
    right = predicted(x[train], labels[train], x[~train]) == labels[~train]
    shuffled = predicted(x[train], rng.permutation(labels[train]), x[~train]) == labels[~train]
    assert right.mean() > 0.97 and shuffled.mean() < 0.6


def test_no_note_is_in_training_and_test(model, events, traces, monkeypatch) -> None:
    asked = []
    plain = region_probe.residuals_at

    def watched(model, traces, places, **sizes):
        asked.append({name for name, _ in places})
        return plain(model, traces, places, **sizes)

    monkeypatch.setattr(region_probe, "residuals_at", watched)
    found = undecided(events, traces, SPACE)
    sizes = {"resamples": 20, "seed": 0, "pad_id": 0, "batch_size": 2}
    table = probe_regions(model, traces, found, depth=2, **sizes)
    assert asked == [{"x", "y"}, {"a", "b", "c"}] * 3
    assert table[["n", "n_train", "regions", "unseen"]].drop_duplicates().to_numpy().tolist() == [
        [5, 4, 2, 0]
    ]
    assert (table["named"] == 1).all() and len(table) == 3 * (LAYERS + 1)
    assert probe_regions(model, traces, found[:0], depth=2, **sizes).empty
