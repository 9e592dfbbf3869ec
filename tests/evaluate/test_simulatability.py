import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from mechdistill.evaluate.las import leakage_split
from mechdistill.evaluate.las_scores import simulatability_scores
from mechdistill.evaluate.simulatability import lessons, rationale, simulate
from mechdistill.evaluate.simulators import Shown
from mechdistill.significance.measures import corpus_measures, corpus_table, document_measures

LABELS = ["a", "b", "c"]


class Scripted:
    """Answers what it was told to; counts how often it is asked."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def answer(self, shown):
        self.asked += shown
        return [self.answers.get(each, ()) for each in shown]


def test_labels_and_the_answer_list_are_taken_out_of_the_reasoning(
    traces, examples, tokenizer, space
):
    for trace, example in zip(traces, examples, strict=True):
        plain = rationale(trace, tokenizer, space, strip_labels=False)
        stripped = rationale(trace, tokenizer, space, strip_labels=True)
        named = [space.label(code) for code in (*example.gold, *example.near)]

        assert all(label.text in plain for label in named)
        assert not any(label.text in stripped or label.code in stripped for label in named)
        assert "Answer" not in plain + stripped
        assert all(space.region(code).name in stripped for code in example.regions)
        assert "  " not in stripped


def test_a_code_alone_is_a_label_too(examples, parse, tokenizer, space):
    code = examples[0].gold[0]
    text = rationale(parse(examples[0], f"since {code} ."), tokenizer, space, strip_labels=True)

    assert code not in text


def test_only_reasoning_that_says_something_teaches(examples, parse, tokenizer, space):
    by_name = {example.example: example for example in examples}
    said = [parse(examples[0], examples[0].reference), parse(examples[1], "")]
    (found,) = lessons(by_name, said, tokenizer, space, strip_labels=True)

    assert found.question == examples[0].prompt
    assert found.answer == examples[0].gold


@pytest.fixture
def answers(examples):
    """Two models on two notes; the second says nothing on the second note."""
    first, second = examples[:2]
    by_name = {example.example: example for example in (first, second)}
    told = {
        Shown(first.prompt, None): ("a",),
        Shown(first.prompt, "r"): ("a", "b"),
        Shown(None, "r"): ("b",),
    }
    simulator = Scripted(told)
    said = {
        ("m-seed0", "m", 0): {first.example: "r", second.example: "r"},
        ("n-seed1", "n", 1): {first.example: "r", second.example: ""},
    }
    return simulator, simulate(simulator, by_name, said)


def test_every_view_of_every_model_is_answered_once(answers, examples):
    simulator, rows = answers

    assert len(simulator.asked) == len(set(simulator.asked))
    assert list(rows["model"]) == ["m-seed0", "m-seed0", "n-seed1", "n-seed1"]
    assert rows["both"].iloc[0] == ["a", "b"]
    assert rows["question"].iloc[0] == ["a"]
    assert rows["reasoning"].iloc[0] == ["b"]
    assert list(rows["reasoned"]) == [True, True, True, False]
    assert rows["gold"].iloc[0] == list(examples[0].gold)


def table(seed, n=12):
    """Random gold and answered sets of two seeds of one method."""
    rng = np.random.default_rng(seed)

    def drawn():
        return [label for label in LABELS if rng.random() < 0.5]

    rows = [
        (f"m-seed{s}", "m", s, f"e{i}", gold, drawn(), drawn(), drawn(), bool(rng.random() < 0.8))
        for s in (0, 1)
        for i, gold in enumerate([drawn() for _ in range(n)])
    ]
    columns = ["model", "method", "seed", "example", "gold", "both", "question", "reasoning"]
    return pd.DataFrame(rows, columns=[*columns, "reasoned"])


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_sklearn(seed):
    rows = table(seed)
    scores = simulatability_scores(rows, LABELS)
    grid = scores.pivot_table(index=["seed", "example"], columns="metric", values="value")
    binarizer = MultiLabelBinarizer(classes=LABELS)

    def f1(row, view):
        pair = binarizer.fit_transform([row["gold"], row[view]])
        return f1_score(pair[:1], pair[1:], average="samples", zero_division=1)

    for row in rows.to_dict("records"):
        found = grid.loc[row["seed"], row["example"]]
        assert found["simulator_question"] == pytest.approx(f1(row, "question"))
        if not row["reasoned"]:
            assert found.drop("simulator_question").isna().all()
            continue
        exact = [float(set(row[view]) == set(row["gold"])) for view in ("both", "question")]
        assert found["simulator_both"] == pytest.approx(f1(row, "both"))
        assert found["las"] == pytest.approx(f1(row, "both") - f1(row, "question"))
        assert found["las_exact"] == exact[0] - exact[1]
        assert found["las_leaking"] == float(f1(row, "reasoning") >= 0.5)


def test_split_of_a_whole_test_split_is_that_of_its_rows():
    rows = table(7)
    scores = simulatability_scores(rows, LABELS)
    predictions = rows.assign(predicted=rows["gold"])
    measures = corpus_measures(predictions, scores, LABELS, [("a",), ("b",), ("c",)], [1])
    names = {("m", 0): "m-seed0", ("m", 1): "m-seed1"}
    corpus = corpus_table([*measures, *document_measures(scores)], names)
    found = corpus[corpus["seed"] == 1].set_index("metric")["value"]

    own = scores[scores["seed"] == 1].pivot(index="example", columns="metric", values="value")
    known = own.dropna()
    expected = leakage_split(known["las"].to_numpy(), known["las_leaking"].to_numpy() == 1)
    assert found["las_split"] == pytest.approx(expected.mean)
    assert found["las_leaking_gain"] == pytest.approx(expected.leaking)
    assert found["las_others_gain"] == pytest.approx(expected.others)
    assert found["las"] == pytest.approx(known["las"].mean())
    assert found["las_leaking"] == pytest.approx(expected.n_leaking / len(known))


def test_without_a_simulator_there_is_no_such_measure():
    rows = table(0)
    scores = pd.DataFrame({"metric": ["focus"], "example": ["e0"], "value": [0.1]})
    scores = scores.assign(method="m", seed=0)
    predictions = rows.assign(predicted=rows["gold"])
    measures = corpus_measures(predictions, scores, LABELS, [("a",), ("b",), ("c",)], [1])

    assert not any("las" in measure.name for measure in measures)
