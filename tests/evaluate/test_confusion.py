import numpy as np
import pytest

from mechdistill.evaluate.anchors import cosine
from mechdistill.evaluate.confusion import (
    confusion,
    confusion_scores,
    refine_window,
    shuffled_confusion_scores,
)


def test_confusion_is_the_mean_cosine_of_growing_prefixes(traces, anchors, tokenizer, encoder):
    """Eq. 4 as a loop over refinement positions; s_q runs from the first decision on."""
    slow = []
    for trace in traces:
        anchor, total = anchors[trace.example], 0.0
        for position in trace.refine:
            late = trace.tokens[trace.refine[0].query + 1 : position.query + 2]
            text = anchor.text + " " + tokenizer.decode(list(late))
            total += float(cosine(encoder.encode([text]), anchor.near)[0])
        slow.append(total / len(trace.refine))

    assert confusion(traces, anchors, tokenizer, encoder) == pytest.approx(slow)


def test_keeping_the_near_miss_raises_confusion(
    examples, parse, space, anchors, tokenizer, encoder
):
    example = examples[0]
    gold, near = (space.label(codes[0]).text for codes in (example.gold, example.near))
    swapped = example.reference.replace(gold, "\0").replace(near, gold).replace("\0", near)
    right, misled = confusion(
        [parse(example, example.reference), parse(example, swapped)], anchors, tokenizer, encoder
    )

    assert misled > right


def test_the_answer_list_does_not_count(examples, parse, anchors, tokenizer, encoder):
    example = examples[0]
    reasoning, _ = example.reference.split("Answer:")
    first, second = confusion(
        [parse(example, example.reference), parse(example, reasoning + "Answer: .")],
        anchors,
        tokenizer,
        encoder,
    )

    assert first == second


def test_a_trace_without_clauses_takes_its_donors_positions(
    examples, parse, anchors, tokenizer, encoder
):
    donor = parse(examples[0], examples[0].reference)
    lost = parse(examples[0], "gout " * (len(donor.tokens) - donor.prompt_length))
    short = parse(examples[0], "gout")
    own = confusion([lost], anchors, tokenizer, encoder)
    given = confusion([lost, short, donor], anchors, tokenizer, encoder, donors=[donor] * 3)

    assert np.isnan(own[0])
    assert not np.isnan(given[0])
    assert np.isnan(given[1])  # it ends before the donor's positions
    assert given[2] == confusion([donor], anchors, tokenizer, encoder)[0]


def test_scores_stand_beside_their_reference_levels(traces, anchors, regions, tokenizer, encoder):
    frame = confusion_scores(traces, anchors, regions, tokenizer, encoder)
    values = frame.pivot(index="example", columns="metric", values="value")
    anchor = anchors[traces[0].example]
    start = float(cosine(encoder.encode([anchor.text]), anchor.near)[0])

    first = values.loc[traces[0].example]
    assert first["confusion_0"] == pytest.approx(start)
    assert first["confusion_change"] == pytest.approx(first["confusion"] - start)
    assert (values["confusion_other"] < values["confusion"]).all()


def test_shuffling_moves_late_tokens_only_and_depends_on_its_seed_alone(
    traces, anchors, tokenizer, encoder
):
    def shuffled(seed):
        frame = shuffled_confusion_scores(traces, anchors, tokenizer, encoder, seed)
        return frame["value"].to_numpy()

    assert np.array_equal(shuffled(0), shuffled(0))
    assert (shuffled(0) != shuffled(1)).any()
    # to a bag of words the last prefix holds nearly the same words in any order
    assert np.abs(shuffled(0) - confusion(traces, anchors, tokenizer, encoder)).max() < 0.4


def test_an_unparsed_trace_has_only_the_level_without_late_tokens(
    examples, parse, anchors, regions, tokenizer, encoder
):
    lost = parse(examples[0], "gout")
    frame = confusion_scores([lost], anchors, regions, tokenizer, encoder)
    shuffled = shuffled_confusion_scores([lost], anchors, tokenizer, encoder, seed=0)

    assert frame.dropna(subset="value")["metric"].tolist() == ["confusion_0"]
    assert shuffled["value"].isna().all()
    assert refine_window(lost).stops == ()
