"""Measured heads against loops over eager attention, variant by variant."""

from __future__ import annotations

import importlib.util
import itertools
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from mechdistill.errors import InputError
from mechdistill.heads.measure import margin_deviation, measure_heads
from mechdistill.heads.places import all_places
from mechdistill.heads.refine import match_on_distance

CHECKED = 2  # traces that the slow loops go through


@pytest.fixture(scope="module")
def measured(model, traces, examples, space, tokenizer):
    return measure_heads(
        model, traces, examples, space, tokenizer, name="teacher", minimum_keys=8, batch_size=4
    )


@pytest.fixture(scope="module")
def oracles(model, traces, examples, space, tokenizer):
    location = Path(__file__).with_name("slow_oracle.py")
    spec = importlib.util.spec_from_file_location("slow_oracle", location)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    chosen = all_places(traces[:CHECKED], examples, space, tokenizer)
    return [module.SlowOracle(model, places) for places in chosen]


def measured_scores(measured, phase, example, layer, head):
    rows = measured.values
    rows = rows[(rows["phase"] == phase) & (rows["example"] == example)]
    rows = rows[(rows["layer"] == layer) & (rows["head"] == head)]
    return {(r.score, r.anchor, r.sinks): r.value for r in rows.itertuples(index=False)}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=2e-3, abs=2e-4), name


def test_every_coarse_variant_equals_the_slow_loops(measured, oracles):
    for oracle in oracles:
        for layer, head in itertools.product(range(oracle.layers), range(oracle.heads)):
            found = measured_scores(measured, 1, oracle.places.example, layer, head)
            assert_same(found, oracle.phase_1(layer, head))


def test_every_refine_variant_equals_the_slow_loops(measured, oracles):
    for oracle in oracles:
        totals = [oracle.total_gradients(r.query, r.target, r.foil) for r in oracle.places.refine]
        for layer, head in itertools.product(range(oracle.layers), range(oracle.heads)):
            found = measured_scores(measured, 2, oracle.places.example, layer, head)
            assert_same(found, oracle.phase_2(layer, head, totals, match_on_distance))


def test_random_model_exercises_the_attended_variant(measured):
    """Else the comparison above would compare zeros."""
    share = measured.values[measured.values["score"] == "attended_share"]["value"]
    assert 0 < share.mean() < 1


def test_margins_are_those_of_the_logits(measured, oracles):
    for oracle in oracles:
        for at in oracle.places.refine:
            _, margin = oracle.direct_gradient(at.query, [at.target], [at.foil])
            rows = measured.margins
            row = rows[(rows["example"] == oracle.places.example) & (rows["query"] == at.query)]
            assert row["margin"].item() == pytest.approx(margin, rel=1e-3, abs=1e-4)


def test_batch_size_changes_nothing(model, traces, examples, space, tokenizer, measured):
    alone = measure_heads(
        model, traces, examples, space, tokenizer, name="teacher", minimum_keys=8, batch_size=1
    )
    keys = [c for c in alone.values if c != "value"]
    pd.testing.assert_frame_equal(alone.values[keys], measured.values[keys])
    torch.testing.assert_close(
        torch.tensor(alone.values["value"].to_numpy()),
        torch.tensor(measured.values["value"].to_numpy()),
        rtol=1e-3,
        atol=1e-4,
    )


def test_trace_without_clauses_is_measured_in_phase_1_only(
    model, traces, examples, space, tokenizer
):
    early = traces[0]
    cut = replace(early, refine=(), events=(), mentions=(), tokens=early.tokens[: early.late_start])
    alone = measure_heads(
        model, [cut], examples, space, tokenizer, name="x", minimum_keys=8, batch_size=4
    )
    assert set(alone.values["phase"]) == {1}
    assert not alone.values["score"].str.endswith("_at_events").any()
    assert len(alone.margins) == 0


def test_measuring_leaves_no_gradient_on_the_weights(model, measured):
    assert all(parameter.grad is None for parameter in model.parameters())


def test_trace_of_another_example_is_refused(model, traces, examples, space, tokenizer):
    with pytest.raises(InputError, match="belongs to example"):
        measure_heads(
            model, traces, examples[1:], space, tokenizer, name="x", minimum_keys=8, batch_size=4
        )


def test_margins_without_spread_have_no_scale():
    with pytest.raises(InputError, match="no scale"):
        margin_deviation(pd.DataFrame({"margin": [2.0, 2.0]}))
