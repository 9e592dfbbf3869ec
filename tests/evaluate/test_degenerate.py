import pandas as pd
import pytest

from mechdistill.evaluate.degenerate import (
    ALL_LABELS,
    CONSTANT,
    NO_LABELS,
    degenerate_kind,
    degenerate_methods,
)

GOLD = [["a"], ["b"], ["a", "c"], ["d"]]
OFFERED = [["a", "b"], ["b", "c"], ["a", "c"], ["d"]]


@pytest.mark.parametrize(
    ("predicted", "kind"),
    [
        ([[], [], [], []], NO_LABELS),
        (OFFERED, ALL_LABELS),
        ([["a", "b", "c", "d"]] * 4, ALL_LABELS),
        ([["a", "b"]] * 4, CONSTANT),
        ([["b", "a"], ["a", "b"], ["a", "b"], ["b", "a"]], CONSTANT),
        (GOLD, ""),
        ([["a"], ["a"], ["a"], ["d"]], ""),
        ([["a"], [], [], []], ""),
    ],
)
def test_kinds(predicted, kind):
    assert degenerate_kind(GOLD, predicted, OFFERED) == kind


def test_a_constant_that_is_right_is_not_degenerate():
    assert degenerate_kind([["a"]] * 4, [["a"]] * 4, [["a", "b"]] * 4) == ""


def test_few_exceptions_do_not_hide_it():
    gold, offered = [[str(i)] for i in range(100)], [["0", "1"]] * 100

    assert degenerate_kind(gold, [[]] * 95 + [["0"]] * 5, offered) == NO_LABELS
    assert degenerate_kind(gold, [[]] * 94 + [["0"]] * 6, offered) == ""


def test_one_document_is_no_constant():
    assert degenerate_kind([["a"]], [["b"]], [["a", "b", "c"]]) == ""


def test_methods_are_named_with_the_seeds_that_failed(examples):
    by_name = {example.example: example for example in examples}
    rows = [
        (method, seed, name, list(example.gold), answer)
        for name, example in by_name.items()
        for method, seed, answer in (
            ("fine", 0, list(example.gold)),
            ("silent", 0, []),
            ("silent", 1, []),
            ("half", 0, list(example.candidates)),
            ("half", 1, list(example.gold)),
        )
    ]
    predictions = pd.DataFrame(rows, columns=["method", "seed", "example", "gold", "predicted"])

    assert degenerate_methods(predictions, by_name) == {
        "silent": "no labels",
        "half": "all labels (1 of 2 seeds)",
    }
