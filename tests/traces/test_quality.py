import pytest
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from mechdistill.traces.quality import clause_pairs, micro_f1, trace_quality

END = " <eos>"


def test_references_are_perfect(examples, parse, space) -> None:
    traces = [parse(example, example.reference + END) for example in examples]
    assert set(trace_quality(examples, traces, space).values()) == {1.0}


def test_micro_f1_agrees_with_scikit_learn(examples, parse, space) -> None:
    answers = [examples[(i * 7 + 3) % len(examples)].gold for i in range(len(examples))]
    traces = [
        parse(example, "Answer: " + " ; ".join(space.label(c).text for c in answer) + " ." + END)
        for example, answer in zip(examples, answers, strict=True)
    ]
    binarise = MultiLabelBinarizer(classes=[label.code for label in space.labels])
    gold = binarise.fit_transform([example.gold for example in examples])
    given = binarise.transform([trace.answer for trace in traces])
    expected = f1_score(gold, given, average="micro", zero_division=0)
    assert micro_f1(examples, traces) == pytest.approx(expected)


def test_an_invented_near_miss_is_no_listed_pair(examples, parse, space) -> None:
    example = examples[0]
    invented = next(
        code for code in space.siblings(example.gold[0]) if code not in example.candidates
    )
    near, other = (space.label(code).text for code in (example.near[0], invented))
    trace = parse(example, example.reference.replace(near, other) + END)
    quality = trace_quality([example], [trace], space)
    assert quality["listed_pair"] == 1 - 1 / len(example.gold)
    assert quality["micro_f1"] == 1


def test_nothing_said_scores_nothing(examples, parse, space) -> None:
    assert set(trace_quality(examples[:1], [parse(examples[0], "")], space).values()) == {0.0}
    assert clause_pairs(parse(examples[0], "")) == []
