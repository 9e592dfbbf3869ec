import pandas as pd
import pytest

from mechdistill.evaluate.bleu import sentence_bleu
from mechdistill.evaluate.example_scores import (
    bleu_scores,
    final_confusion,
    label_scores,
    reasoning,
)
from mechdistill.evaluate.score_rows import labelled, score_rows


def wide(frame):
    return frame.pivot(index="example", columns="metric", values="value")


def test_label_scores_of_each_document():
    predictions = pd.DataFrame(
        {
            "example": ["one", "two", "three"],
            "gold": [["a", "b"], ["c"], ["a"]],
            "predicted": [["b", "a"], ["a", "c"], []],
        }
    )
    values = wide(label_scores(predictions, ["a", "b", "c"], [1, 3]))

    assert values.loc["one"].to_dict() == {
        "samples_f1": 1.0,
        "exact_match": 1.0,
        "p_at_1": 1.0,
        "p_at_3": pytest.approx(2 / 3),
    }
    assert values.loc["two"].to_dict() == {
        "samples_f1": pytest.approx(2 / 3),
        "exact_match": 0.0,
        "p_at_1": 0.0,
        "p_at_3": pytest.approx(1 / 3),
    }
    assert (values.loc["three"] == 0).all()


def test_bleu_compares_the_reasoning_alone(examples, traces, parse, tokenizer):
    example, teacher = examples[0], traces[0]
    words, _ = example.reference.split("Answer:")
    other_answer = parse(example, words + "Answer: .")
    values = wide(bleu_scores([other_answer], {example.example: teacher}, tokenizer))

    assert reasoning(teacher, tokenizer) == words.strip()
    assert values.loc[example.example, "bleu"] == pytest.approx(100)


def test_bleu_of_an_unlike_trace(examples, traces, parse, tokenizer):
    other = parse(examples[0], "Overview: #1 gout . Answer: .")
    values = wide(bleu_scores([other], {traces[0].example: traces[0]}, tokenizer))
    expected = sentence_bleu("Overview: #1 gout .", reasoning(traces[0], tokenizer))

    assert values["bleu"].tolist() == [pytest.approx(expected)]
    assert values["bleu_length"].tolist() == [len(["Overview", ":", "#", "1", "gout", "."])]


def test_final_confusion_is_the_end_of_the_cumulative_curve():
    curves = pd.DataFrame(
        [
            ("x", "cumulative", "confusion", 0.5, 0.3),
            ("x", "cumulative", "confusion", 1.0, 0.2),
            ("x", "windowed", "confusion", 0.975, 0.1),
            ("x", "cumulative", "focus", 1.0, 0.9),
        ],
        columns=["example", "kind", "metric", "t", "value"],
    )

    assert final_confusion(curves).to_numpy().tolist() == [["x", "confusion_all", 0.2]]


def test_the_model_stands_in_front():
    frame = labelled(pd.DataFrame({"example": ["x"]}), "mech-seed0", "mech", 0)

    assert frame.columns.tolist() == ["model", "method", "seed", "example"]
    assert frame.iloc[0].tolist() == ["mech-seed0", "mech", 0, "x"]


def test_no_rows_keep_the_type_of_the_column():
    joined = pd.concat([score_rows([]), score_rows([("x", "focus", 0.5)])], ignore_index=True)

    assert joined["value"].dtype == "float64"
