"""Heads read on traces of a sub-word tokenizer: every place is all of its tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mechdistill.data.examples import example_of
from mechdistill.data.frame import Frame
from mechdistill.data.tokenizer import encode_trace
from mechdistill.data.world import WorldSettings, draw_case
from mechdistill.heads.measure import measure_heads
from mechdistill.heads.places import all_places
from mechdistill.traces.parse import parse_trace
from tests.small_space import small_model
from tests.small_tokenizers import byte_level


@pytest.fixture(scope="module")
def pieces(examples):
    return byte_level([t for e in examples for t in (e.prompt, e.reference)], size=500)


@pytest.fixture(scope="module", params=[("plain", 0), ("chat", 1)])
def framed(request, space, pieces):
    settings = WorldSettings(seed=0, groups_in_context=4, problems_min=1, problems_max=2)
    rng = np.random.default_rng(0)
    frame = Frame.of(pieces, *request.param)
    cases = [draw_case(space, settings, "ranking", rng) for _ in range(4)]
    return [example_of(case, f"n{i}", "ranking", frame) for i, case in enumerate(cases)]


@pytest.fixture(scope="module")
def written(framed, space, pieces):
    return [
        parse_trace(e, encode_trace(pieces, e.reference, e.prompt), pieces, space, 30)
        for e in framed
    ]


def text(place, positions, pieces) -> str:
    return pieces.decode([place.tokens[p] for p in positions]).strip()


def test_places_are_all_tokens_of_what_stands_there(framed, written, space, pieces) -> None:
    places = all_places(written, framed, space, pieces)
    for place, example in zip(places, framed, strict=True):
        told = [example.prompt[start:end] for start, end in sorted(example.evidence)]
        assert text(place, place.evidence, pieces).split() == " ".join(told).split()
        names = {space.region(region).name for region in example.regions}
        assert {n for n in names if n in text(place, place.anchor_mentions, pieces)} == names
        assert max(place.anchor_mentions) < place.prompt_length
        for at, cue in zip(place.refine, place.cues, strict=True):
            assert text(place, cue, pieces) == space.label(example.gold[at.clause]).cue
        for anchor, region in zip(place.anchors, example.regions, strict=True):
            assert pieces.decode(list(anchor)) == " " + space.region(region).name
        specials = {p for p, t in enumerate(place.tokens) if t in pieces.all_special_ids}
        assert set(place.sinks) == {0, *specials}
        assert all(a != b for a, b in zip(place.gold, place.near, strict=True))


def test_anchors_inside_a_label_are_no_mention(framed, written, space, pieces) -> None:
    """The region's name stands in its labels' texts too; only the list's heading counts."""
    for place, example in zip(all_places(written, framed, space, pieces), framed, strict=True):
        found = text(place, place.anchor_mentions, pieces)
        wanted = [space.region(r).name for r in example.regions]
        assert len(found.split()) == sum(len(name.split()) for name in wanted)


def test_heads_are_scored_and_margins_are_of_the_parting_tokens(
    framed, written, space, pieces
) -> None:
    model = small_model(pieces)
    found = measure_heads(
        model, written, framed, space, pieces, name="m", minimum_keys=8, batch_size=3
    )
    scored = found.values.set_index("score")["value"]
    for score in ("coarse", "refine", "help", "loop", "attention_cue", "attention_evidence"):
        assert np.isfinite(scored[score]).all()
        assert scored[score].abs().max() > 0
    margins = found.margins.set_index(["example", "query"])["margin"]
    for trace in written:
        with torch.no_grad():
            logits = model(torch.tensor([trace.tokens])).logits[0]
        for at in trace.refine:
            expected = logits[at.query, at.target] - logits[at.query, at.foil]
            assert margins[trace.example, at.query] == pytest.approx(float(expected), abs=1e-4)
