"""Quantities over the reasoning, and stored attention rows."""

from __future__ import annotations

import numpy as np
import pytest

from mechdistill.heads.attention_rows import attention_rows
from mechdistill.heads.dynamics import STAGES, at_every_token, head_dynamics
from mechdistill.heads.places import all_places
from mechdistill.heads.reading import read
from mechdistill.heads.refine import helpfulness_cosine, mean_cosine
from mechdistill.models.margin import margin_gradient

NAMED = {"name": "teacher", "batch_size": 4}


@pytest.fixture(scope="module")
def dynamics(model, traces, examples, space, tokenizer):
    return head_dynamics(model, traces, examples, space, tokenizer, **NAMED)


def test_stages_cover_every_token_once():
    for number in range(1, 200):
        covering = [s for s, (a, b) in STAGES.items() if a <= number and (not b or number <= b)]
        assert len(covering) == 1


def test_similarity_needs_mentions_of_both_kinds(dynamics):
    similar = dynamics[dynamics["quantity"] != "help_cosine"]
    assert "1-10" not in set(similar["stage"])  # nothing is shortlisted yet: a gap, no zero
    assert "1-10" in set(dynamics[dynamics["quantity"] == "help_cosine"]["stage"])
    counts = similar.groupby(["layer", "head", "example", "stage"])["quantity"].nunique()
    assert (counts == 2).all()


def test_last_stage_is_the_mean_over_its_tokens(
    dynamics, model, traces, examples, space, tokenizer
):
    trace = max(traces, key=lambda t: t.reasoning_end - t.prompt_length)
    (place,) = all_places([trace], examples, space, tokenizer)
    reading = read(model, [at_every_token(place, trace)])
    first = STAGES["36-50"][0]
    slots = slice(first - 1, 50)
    queries = [at.query for at in reading.places[0].refine[slots]]
    # token number n is at prompt_length + n - 1, predicted one position earlier
    assert queries[0] == trace.prompt_length + first - 2
    layer, head = 1, 2
    gradient = margin_gradient(model, reading.h_final, *reading.label_ids())
    cosine = helpfulness_cosine(reading.refine_writes(layer), gradient)[0, head, slots]
    shortlist, _ = reading.shortlist()
    key, _ = reading.at_mentions(layer)
    similar = mean_cosine(reading.refine_queries(layer), key, shortlist)[0, head, slots]
    rows = dynamics[(dynamics["layer"] == layer) & (dynamics["head"] == head)]
    rows = rows[(rows["example"] == trace.example) & (rows["stage"] == "36-50")]
    value = rows.set_index("quantity")["value"]
    assert value["help_cosine"] == pytest.approx(cosine.mean().item(), rel=1e-4, abs=1e-6)
    assert value["similarity_shortlist"] == pytest.approx(
        similar.nanmean().item(), rel=1e-3, abs=1e-5
    )


def test_mentions_of_the_answer_list_are_no_shortlist(traces, examples, space, tokenizer):
    for trace, place in zip(traces, all_places(traces, examples, space, tokenizer), strict=True):
        every = at_every_token(place, trace)
        assert max(p for at in every.refine for p in at.shortlist) < trace.reasoning_end
        assert all(p < at.query for at in every.refine for p in (*at.shortlist, *at.near_miss))


def test_attention_rows_are_mean_distributions_over_tokens(
    model, traces, examples, space, tokenizer
):
    frame = attention_rows(model, traces[:3], examples, space, tokenizer, **NAMED)
    heads = model.config.num_hidden_layers * model.config.num_attention_heads
    assert len(frame) == 2 * 3 * heads
    lengths = {trace.example: len(trace.tokens) for trace in traces}
    last = {
        (trace.example, phase): max(queries)
        for trace in traces
        for phase, queries in ((1, trace.early), (2, [at.query for at in trace.refine]))
    }
    for row in frame.itertuples():
        weights = np.asarray(row.weights)
        assert len(weights) == lengths[row.example]
        assert weights.sum() == pytest.approx(1, abs=1e-4)
        assert (weights[last[row.example, row.phase] + 1 :] == 0).all()
