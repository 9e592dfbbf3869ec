import numpy as np
import pytest

from mechdistill.evaluate.anchors import cosine
from mechdistill.evaluate.focus import focus, focus_scores


def test_focus_is_the_mean_cosine_of_the_predicted_early_tokens(
    traces, anchors, tokenizer, encoder
):
    """Eq. 2 as a loop; position q stands for the token q + 1."""
    slow = []
    for trace in traces:
        total = 0.0
        for q in trace.early:
            word = tokenizer.decode([trace.tokens[q + 1]])
            total += float(cosine(encoder.encode([word]), anchors[trace.example].anchor)[0])
        slow.append(total / len(trace.early))

    assert focus(traces, anchors, tokenizer, encoder) == pytest.approx(slow)


def test_naming_other_regions_lowers_focus(examples, parse, space, anchors, tokenizer, encoder):
    example = examples[0]
    wrong = example.reference
    for region in space.regions:
        if region.code in example.regions:
            other = next(r for r in space.regions if r.code not in example.regions)
            wrong = wrong.replace(f" {region.name} ", f" {other.name} ")
    right, misled = focus(
        [parse(example, example.reference), parse(example, wrong)], anchors, tokenizer, encoder
    )

    assert misled < right - 0.1


def test_a_trace_without_early_tokens_has_no_focus(examples, parse, anchors, tokenizer, encoder):
    empty = parse(examples[0], "Answer: .")

    assert empty.early == ()
    assert np.isnan(focus([empty], anchors, tokenizer, encoder)).all()


def test_shuffled_level_uses_only_foreign_anchors(traces, anchors, regions, tokenizer, encoder):
    frame = focus_scores(traces, anchors, regions, tokenizer, encoder)
    values = frame.pivot(index="example", columns="metric", values="value")

    assert (values["focus_shuffled"] < values["focus"] - 0.1).all()
    assert values["focus"].to_numpy() == pytest.approx(focus(traces, anchors, tokenizer, encoder))
    trace = traces[0]
    foreign = [
        focus_with(trace, anchors[name], tokenizer, encoder)
        for name in anchors
        if not regions[name] & regions[trace.example]
    ]
    assert values.loc[trace.example, "focus_shuffled"] == pytest.approx(np.mean(foreign))


def focus_with(trace, anchor, tokenizer, encoder):
    return focus([trace], {trace.example: anchor}, tokenizer, encoder)[0]
