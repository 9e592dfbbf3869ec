"""Scores of prompts of one's own: the workflow's numbers, and every family's by slow loops."""

from __future__ import annotations

import copy
import itertools
import re
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from mechdistill.errors import InputError
from mechdistill.heads import AnnotatedTrace, Contrast, HeadScores, score_prompts
from mechdistill.heads.annotated_trace import places_of_annotated
from mechdistill.heads.measure import measure_heads
from mechdistill.heads.places import all_places
from tests.heads.family_oracle import FamilyOracle
from tests.models.tiny import HEADS, LAYERS, MAKERS, eager_model
from tests.small_tokenizers import byte_level

PROMPT = "Note: swollen legs, short of breath at night, heart failure of late. Which one is it?"
REASONING = " Region: heart failure. Weigh chronic heart failure against acute heart failure. So"
REASONING += " acute heart failure, or acute heart failure it stays."
ACUTE = Contrast("acute heart failure", "chronic heart failure", cue="of late")
TRACE = AnnotatedTrace(
    PROMPT, REASONING, anchors="heart failure", evidence="swollen legs", early=6, contrasts=ACUTE
)
CHECKED = ("kurtosis", "cosine", "coarse", "attention_evidence")
CHECKED += ("loop", "help", "refine", "help_total", "attention_cue")


@pytest.fixture(scope="module")
def pieces():
    return byte_level([PROMPT, REASONING], size=300)


@pytest.fixture(params=list(MAKERS))
def family(request):
    return request.param


def random_model(family, tokenizer):
    return eager_model(family, vocab_size=len(tokenizer))


def scored(model, tokenizer, traces, **options):
    """Without the time that intervals take."""
    return score_prompts(model, tokenizer, traces, resamples=2, **options)


# --- the workflow's numbers ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def cut(traces):
    """The world's traces up to their answers, with the refinement positions at labels alone."""
    return [
        replace(
            trace,
            tokens=trace.tokens[: trace.reasoning_end],
            refine=tuple(r for r in trace.refine if departs(trace, r)),
        )
        for trace in traces
    ]


def departs(trace, at):
    events = [e for e in trace.events if e.kind == "departure"]
    return any(e.query == at.query for e in events)


def annotated(trace, example, space, tokenizer):
    """What the world knows of a trace, pointed out in its text."""
    begin = len(example.prompt)
    reasoning = " " + tokenizer.decode(trace.tokens[trace.prompt_length :])
    spans = [
        (begin + start, begin + end)
        for start, end in tokenizer.backend_tokenizer.encode(
            reasoning, add_special_tokens=False
        ).offsets
    ]

    def mentions(verdict):
        return [
            (spans[m.start - trace.prompt_length][0], spans[m.end - trace.prompt_length - 1][1])
            for m in trace.mentions
            if m.kind == "label" and m.verdict == verdict and m.end <= len(trace.tokens)
        ]

    names = [space.region(region).name for region in dict.fromkeys(example.regions)]
    alone = r"(?<!acute )(?<!chronic )(?<!left )\b{}\b(?! sign)"  # no part of a label or finding
    return AnnotatedTrace(
        example.prompt,
        reasoning,
        anchors=[re.compile(alone.format(name)) for name in names],
        evidence=[tuple(span) for span in example.evidence],
        early=len(trace.early),
        contrasts=[
            Contrast(space.label(gold).text, space.label(near).text, cue=[tuple(cue)])
            for gold, near, cue in zip(example.gold, example.near, example.cues, strict=True)
        ],
        shortlist=mentions("kept"),
        ruled_out=mentions("rejected"),
        name=trace.example,
    )


def test_places_are_those_of_the_workflow(cut, examples, space, tokenizer):
    assert sum(len(trace.refine) for trace in cut) >= 10
    expected = all_places(cut, examples, space, tokenizer)
    found = [
        places_of_annotated(annotated(t, e, space, tokenizer), tokenizer, t.example)
        for t, e in zip(cut, examples, strict=True)
    ]
    for one, other in zip(found, expected, strict=True):
        assert asdict(one) == asdict(other)


def test_scores_are_those_of_the_workflow(model, cut, examples, space, tokenizer):
    expected = measure_heads(
        model, cut, examples, space, tokenizer, name="", minimum_keys=8, batch_size=4
    ).values
    given = [annotated(t, e, space, tokenizer) for t, e in zip(cut, examples, strict=True)]
    found = scored(model, tokenizer, given, batch_size=4).values
    shared = ["layer", "head", "example", "anchor", "sinks", "value"]
    pd.testing.assert_frame_equal(found[shared], expected[shared])
    assert found["factor"].tolist() == expected["score"].tolist()


# --- every family, by slow loops -----------------------------------------------------------------


def test_scores_equal_slow_loops_over_eager_attention(family, pieces):
    model = random_model(family, pieces)
    found = scored(model, pieces, TRACE)
    oracle = FamilyOracle(model, places_of_annotated(TRACE, pieces, "x"))
    spread = {}
    for layer, head in itertools.product(range(LAYERS), range(HEADS)):
        for factor, value in oracle.scores(layer, head).items():
            rows = found.of(factor)
            row = rows[(rows["layer"] == layer) & (rows["head"] == head)]
            assert row["value"].item() == pytest.approx(value, rel=2e-3, abs=2e-4), factor
            spread.setdefault(factor, []).append(value)
    assert set(spread) == set(CHECKED)
    assert all(np.std(values) > 1e-4 for values in spread.values())


def test_a_window_hides_what_it_hides_from_the_model(pieces):
    """Else the comparison above would hold without windows too."""
    places = places_of_annotated(TRACE, pieces, "x")
    assert min(at.query for at in places.refine) - max(places.evidence) > 8


def test_half_precision_agrees_with_the_same_weights_in_single(family, pieces):
    wide = random_model(family, pieces).to(torch.bfloat16).float()
    narrow = copy.deepcopy(wide).to(torch.bfloat16)
    found, expected = (scored(m, pieces, TRACE) for m in (narrow, wide))
    assert set(found.values["value"].map(type)) == {float}
    for factor in ("cosine", "coarse_log", "loop", "help_cosine", "attention_cue"):
        close = found.of(factor)["value"] - expected.of(factor)["value"]
        assert close.abs().max() < 0.15, factor
        assert close.abs().mean() < 0.03, factor


def test_length_of_the_batch_changes_nothing(family, pieces):
    longer = replace(TRACE, reasoning=REASONING + " And so on, until all is said.", name="long")
    model = random_model(family, pieces)
    both = scored(model, pieces, [replace(TRACE, name="short"), longer]).values
    for trace in (replace(TRACE, name="short"), longer):
        alone = scored(model, pieces, trace).values
        rows = both[both["example"] == trace.name].reset_index(drop=True)
        np.testing.assert_allclose(rows["value"], alone["value"], rtol=2e-3, atol=2e-4)


# --- what comes back -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scores(pieces):
    model = random_model("llama", pieces)
    other = replace(TRACE, prompt=PROMPT.replace("swollen legs", "swollen legs, legs"))
    return score_prompts(model, pieces, [TRACE, other])


def test_table_has_a_row_a_head_and_variant(scores):
    rows = scores.of("coarse")
    assert len(rows) == LAYERS * HEADS
    assert rows["anchor"].unique() == ["unembed"]
    assert rows["sinks"].unique() == ["out"]
    assert rows["depth"].tolist() == [(layer + 1) / LAYERS for layer in rows["layer"]]
    assert (rows["n"] == 2).all()
    assert ((rows["ci_low"] <= rows["value"]) & (rows["value"] <= rows["ci_high"])).all()
    means = scores.values.groupby(["factor", "anchor", "sinks", "layer", "head"])["value"].mean()
    row = rows.iloc[5]
    assert row["value"] == pytest.approx(means["coarse", "unembed", "out", row.layer, row["head"]])
    assert len(scores.of("coarse", anchor="context", sinks="in")) == LAYERS * HEADS


def test_one_example_has_no_interval(pieces):
    table = scored(random_model("llama", pieces), pieces, TRACE).table
    assert table[["ci_low", "ci_high"]].isna().all(axis=None)


def test_ranking_runs_down_and_repeats(scores):
    ranking = scores.ranking("refine")
    values = scores.of("refine").set_index(["layer", "head"])["value"]
    assert len(set(ranking)) == LAYERS * HEADS
    assert [values[head] for head in ranking] == sorted(values, reverse=True)


def test_unknown_names_are_listed(scores):
    with pytest.raises(InputError, match=r"(?s)no factor 'corse'.*attention_cue, .*coarse"):
        scores.of("corse")
    with pytest.raises(
        InputError, match=r"(?s)no anchor 'unembedding'.*'context', 'embed', 'unembed'"
    ):
        scores.ranking("coarse", anchor="unembedding")


def test_map_shows_every_head_and_names_the_highest(scores):
    figure = scores.plot("refine")
    axes = figure.axes[0]
    shown = np.asarray(axes.images[0].get_array())
    expected = scores.of("refine").pivot(index="layer", columns="head", values="value")
    np.testing.assert_allclose(shown, expected.to_numpy())
    figure.draw_without_rendering()
    title = axes.title.get_window_extent()
    assert title.x0 >= 0 and title.x1 <= figure.bbox.width
    named = {text.get_text() for text in axes.texts}
    assert named == {f"L{layer}H{head}" for layer, head in scores.ranking("refine")[:3]}


def test_either_phase_can_be_scored_alone(pieces):
    model = random_model("llama", pieces)
    early = scored(model, pieces, replace(TRACE, contrasts=()))
    late = scored(model, pieces, replace(TRACE, anchors=()))
    assert "coarse" in set(early.table["factor"]) and "refine" not in set(early.table["factor"])
    assert "refine" in set(late.table["factor"]) and "coarse" not in set(late.table["factor"])
    whole = scored(model, pieces, TRACE)
    assert early.ranking("coarse") == whole.ranking("coarse")
    assert late.ranking("refine") == whole.ranking("refine")


def test_without_evidence_there_is_no_attention_on_it(pieces):
    """Not an attention of 0."""
    model = random_model("llama", pieces)
    without = replace(TRACE, evidence=(), name="without")
    alone = scored(model, pieces, without)
    assert not alone.table["factor"].str.startswith("attention_evidence").any()
    assert not alone.table["factor"].str.startswith("attention_other").any()
    both = scored(model, pieces, [TRACE, without])
    assert (both.of("attention_other")["n"] == 1).all()


def test_anchors_that_the_prompt_does_not_name_have_no_mean_residual(pieces):
    model, absent = random_model("llama", pieces), replace(TRACE, anchors="gout", name="absent")
    assert set(scored(model, pieces, absent).table["anchor"]) == {"", "embed", "unembed"}
    both = scored(model, pieces, [TRACE, absent])
    assert (both.of("coarse", anchor="context")["n"] == 1).all()
    assert (both.of("coarse", anchor="embed")["n"] == 2).all()


def test_scores_are_the_same_each_time(pieces, scores):
    model = random_model("llama", pieces)
    other = replace(TRACE, prompt=PROMPT.replace("swollen legs", "swollen legs, legs"))
    again = score_prompts(model, pieces, [TRACE, other])
    pd.testing.assert_frame_equal(again.table, scores.table)
    assert isinstance(again, HeadScores)


# --- what is refused -----------------------------------------------------------------------------

WRONG = {
    "evidence elsewhere": (
        {"evidence": "Region"},
        "trace 1, evidence: 'Region' is not in the prompt.*stands elsewhere",
    ),
    "evidence nowhere": ({"evidence": "rash"}, "'rash' is not in the prompt"),
    "span beyond the text": ({"evidence": (5, 5000)}, "reaches beyond the text"),
    "window nowhere": ({"early": "Verdict"}, "early window: 'Verdict' is not in the reasoning"),
    "window of nothing": ({"early": 0}, "early window of 0 tokens"),
    "no anchor": ({"anchors": [" "]}, "an anchor is empty"),
    "nothing to score": ({"anchors": (), "contrasts": ()}, "neither anchors nor contrasts"),
    "no reasoning": ({"reasoning": " "}, "has no reasoning"),
    "no space between": ({"reasoning": REASONING.strip(), "prompt": "Note"}, "runs into"),
    "label begins the near-miss": (
        {"contrasts": Contrast("acute heart", "acute heart failure")},
        "part at no token",
    ),
    "label never written late": (
        {"contrasts": Contrast("chronic heart failure", "acute heart failure")},
        "writes 'chronic heart failure' nowhere behind a mention of it",
    ),
    "position before both mentions": (
        {"contrasts": replace(ACUTE, at="Region")},
        "no refinement position has mentions of both kinds",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_annotation_that_is_not_there_is_refused(pieces, case):
    changes, message = WRONG[case]
    with pytest.raises(InputError, match=f"(?s){message}"):
        scored(random_model("llama", pieces), pieces, replace(TRACE, **changes))


def test_traces_that_do_not_go_together_are_refused(pieces):
    model = random_model("llama", pieces)
    with pytest.raises(InputError, match="no trace"):
        scored(model, pieces, [])
    with pytest.raises(InputError, match="two traces have the name 'a'"):
        scored(model, pieces, [replace(TRACE, name="a")] * 2)
    with pytest.raises(InputError, match="trace 2 has no contrasts, trace 1 has"):
        scored(model, pieces, [TRACE, replace(TRACE, contrasts=())])


def test_unknown_family_is_refused_with_what_it_needs(pieces):
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=len(pieces)))
    with pytest.raises(InputError, match="gpt2"):
        scored(model, pieces, TRACE)
