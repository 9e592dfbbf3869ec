"""Every worked case is somebody's test."""

import ast
import json
from pathlib import Path

TESTS = Path(__file__).parents[1]


def called(tree):
    """Metrics named in calls of `cases`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "cases":
            yield from (argument.value for argument in node.args)


def test_every_case_of_the_file_is_taken_by_a_test():
    content = json.loads(Path(__file__).with_name("metrics_cases.json").read_text())
    trees = [ast.parse(file.read_text()) for file in TESTS.rglob("test_*.py")]
    taken = {metric for tree in trees for metric in called(tree)}

    assert len(content["cases"]) == content["count"] == 113
    assert taken == {case["metric"] for case in content["cases"]}


def test_no_call_leaves_some_cases_of_its_metric_out():
    shortened = [
        file.name
        for file in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Call)
        and getattr(node.value.func, "id", "") == "cases"
    ]

    assert shortened == []
