import numpy as np
import pytest

from mechdistill.evaluate.confusion import confusion
from mechdistill.evaluate.curves import (
    confusion_values,
    cumulative_curve,
    curve_table,
    focus_values,
    warped,
    windowed_curve,
)


def test_the_first_refinement_lies_at_one_half(traces):
    for trace in traces:
        t = warped(trace)

        assert t[0] == 0
        assert t[-1] == 1
        assert t[trace.refine[0].query + 1 - trace.prompt_length] == 0.5
        assert (np.diff(t) > 0).all()
        assert len(t) == trace.reasoning_end - trace.prompt_length


def test_cumulative_curve_is_the_mean_so_far():
    t = np.array([0.0, 0.3, 0.6, 1.0])
    values = np.array([1.0, 3.0, 5.0, 7.0])

    # bins end at 0.25, 0.5, 0.75, 1
    assert cumulative_curve(t, values, 4).tolist() == [1.0, 2.0, 3.0, 4.0]
    # the first value is a level: it does not enter the mean of the others
    assert cumulative_curve(t, values, 4, first=1).tolist() == [1.0, 3.0, 4.0, 5.0]


def test_windowed_curve_is_the_mean_of_each_bin():
    t = np.array([0.0, 0.1, 0.6, 1.0])
    values = np.array([1.0, 3.0, 5.0, 7.0])
    curve = windowed_curve(t, values, 4)

    assert curve[[0, 2, 3]].tolist() == [2.0, 5.0, 7.0]
    assert np.isnan(curve[1])


def test_confusion_stays_at_its_level_until_the_first_late_token(
    traces, anchors, tokenizer, encoder
):
    trace = traces[0]
    ((index, values),) = confusion_values([trace], anchors, tokenizer, encoder, stride=1)
    early = trace.refine[0].query + 1 - trace.prompt_length

    assert index.tolist() == list(range(trace.reasoning_end - trace.prompt_length))
    assert np.unique(values[:early]).size == 1
    assert values[early] != values[0]
    at_refine = [values[r.query + 1 - trace.prompt_length] for r in trace.refine]
    assert np.mean(at_refine) == pytest.approx(confusion([trace], anchors, tokenizer, encoder)[0])


def test_a_stride_skips_late_tokens_but_not_the_last(traces, anchors, tokenizer, encoder):
    trace = traces[0]
    ((every, values),) = confusion_values([trace], anchors, tokenizer, encoder, stride=1)
    ((some, fewer),) = confusion_values([trace], anchors, tokenizer, encoder, stride=3)
    early = trace.refine[0].query + 1 - trace.prompt_length

    assert some[-1] == every[-1]
    assert np.unique(np.diff(some[early:])).tolist() == [3]
    assert fewer.tolist() == pytest.approx(values[some].tolist())


def test_table_ends_in_the_mean_over_the_whole_reasoning(traces, anchors, tokenizer, encoder):
    table = curve_table(traces, anchors, tokenizer, encoder, bins=10, stride=2)
    last = table[(table["kind"] == "cumulative") & (table["t"] == 1.0)]
    trace = traces[0]
    ends = last[last["example"] == trace.example].set_index("metric")["value"]

    assert ends["focus"] == pytest.approx(
        focus_values(trace, anchors[trace.example], tokenizer, encoder).mean()
    )
    ((index, near),) = confusion_values([trace], anchors, tokenizer, encoder, stride=2)
    late = index >= trace.refine[0].query + 1 - trace.prompt_length
    assert ends["confusion"] == pytest.approx(near[late].mean())
    assert table["t"].between(0, 1).all()
    assert table["value"].notna().all()


def test_a_trace_that_cannot_be_warped_has_no_curve(examples, parse, anchors, tokenizer, encoder):
    lost = parse(examples[0], "gout")

    assert curve_table([lost], anchors, tokenizer, encoder, bins=10, stride=2).empty
