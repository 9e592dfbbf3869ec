"""Budgets side by side: what is out of line is said, and times stand apart."""

import pytest

from mechdistill.report.budgets import budget_table, out_of_line, reference, time_table
from mechdistill.report.page.rows import budget_rows


def budget(**changed):
    usual = {
        "parameters": 1000,
        "steps": 400,
        "sequences": 12800,
        "target_tokens": 100_000,
        "forward_tokens": 250_000,
        "teacher_generations": 1600,
        "settings_tried": 1,
        "wall_seconds": 60.0,
        "peak_memory_mib": 500.0,
    }
    return usual | changed


BUDGETS = {
    ("vanilla", 0): budget(),
    ("mech", 0): budget(target_tokens=100_900, wall_seconds=63.0),
    ("morsd", 0): budget(teacher_generations=6400),
    ("cwt", 0): budget(target_tokens=26_000, settings_tried=2),
}


def test_equal_budgets_are_in_line():
    table = budget_table(BUDGETS).set_index("method")
    assert table.loc["vanilla", "out_of_line"] == ""
    assert table.loc["mech", "out_of_line"] == ""  # 0.9 %: batches differ in length


def test_a_run_out_of_line_is_flagged_with_what_and_how_much():
    table = budget_table(BUDGETS).set_index("method")
    assert table.loc["morsd", "out_of_line"] == "texts of the teacher x 4.00"
    assert table.loc["cwt", "out_of_line"] == "tokens with a loss x 0.26; settings tried x 2.00"
    assert table.loc["cwt", "target_tokens_ratio"] == pytest.approx(0.26)


def test_the_budget_table_holds_no_times():
    slow = {key: {**of, "wall_seconds": 1e6} for key, of in BUDGETS.items()}
    assert budget_table(slow).equals(budget_table(BUDGETS))


def test_times_stand_beside_plain_distillation():
    table = time_table(BUDGETS).set_index("method")
    assert table.loc["mech", "wall_seconds_ratio"] == pytest.approx(1.05)


def test_without_plain_distillation_the_first_method_of_a_seed_is_the_reference():
    budgets = {("mech", 1): budget(), ("cwt", 1): budget(), ("vanilla", 0): budget()}
    assert reference(budgets, 1) == "mech"
    assert reference(budgets, 0) == "vanilla"


def test_what_the_reference_did_not_use_at_all_is_flagged_too():
    budgets = {("vanilla", 0): budget(teacher_generations=0), ("mech", 0): budget()}
    assert budget_table(budgets)["out_of_line"].tolist() == ["", "texts of the teacher x inf"]


def test_nothing_is_said_of_amounts_that_are_not_known():
    assert out_of_line({}) == []
    assert budget_table({("vanilla", 0): {}, ("mech", 0): budget()})["out_of_line"][1] == ""


def test_the_page_shows_flags_once_for_equal_seeds():
    budgets = {
        ("vanilla", 0): budget(),
        ("vanilla", 1): budget(),
        ("morsd", 0): budget(teacher_generations=6400),
        ("morsd", 1): budget(teacher_generations=6400),
    }
    rows = budget_rows(budgets)
    assert [row["out_of_line"] for row in rows] == ["", "texts of the teacher x 4.00"]
    assert not any("second" in key for key in rows[0])
