import math

import pytest

from mechdistill.artifacts import write_table
from mechdistill.errors import InputError
from mechdistill.report.claims import claims, judge_all
from mechdistill.report.claims.registry import COLUMNS, claim
from mechdistill.report.evidence import COLUMNS as TABLE_COLUMNS
from mechdistill.report.evidence import CONTENT, Evidence, NotTested, read_evidence

VERDICTS = ("holds", "does not hold", "no difference", "undecided", "not tested in this study")


def test_every_claim_of_the_paper_has_one_row_in_order(build):
    table = judge_all(build.evidence())
    assert list(table.columns) == list(COLUMNS)
    numbered = [id for id in table["id"] if id.startswith("C") and "." not in id]
    assert numbered == [f"C{i:02d}" for i in range(1, 47)]
    assert table["id"].is_unique


def test_an_empty_study_tests_nothing_and_says_why(build):
    table = judge_all(build.evidence())
    assert set(table["verdict"]) == {"not tested in this study"}
    assert table["detail"].str.endswith(".").all()
    assert (table["detail"].str.len() > 15).all()
    assert (table["sources"] == "").all()


def test_a_tested_claim_names_numbers_and_files(build):
    scores = build.scores(
        {
            ("mech", "samples_f1"): 0.7,
            ("p1_only", "samples_f1"): 0.5,
            ("p2_only", "samples_f1"): 0.5,
        }
    )
    table = judge_all(build.evidence(scores=scores), {"scores": "results/x/scores.parquet"})
    row = table.set_index("id").loc["C17"]
    assert row["verdict"] == "holds"
    assert row["ci_low"] < row["effect"] < row["ci_high"]
    assert row["n"] == 24
    assert "results/x/scores.parquet" in row["sources"]
    assert "mech minus p1_only: +0.2" in row["detail"]


def test_no_difference_states_what_could_have_been_detected(build):
    rows = [("focus", "mech", b, 0.0, -0.05, 0.05, "") for b in ("vanilla", "vanilla_positions")]
    table = judge_all(build.evidence(comparisons=build.comparisons(rows))).set_index("id")
    assert table.loc["C19", "verdict"] == "no difference (detectable difference 0.071)"


def test_equal_scores_on_all_notes_are_said_to_be_equal(build):
    rows = [("focus", "mech", b, 0.0, 0.0, 0.0, "") for b in ("vanilla", "vanilla_positions")]
    table = judge_all(build.evidence(comparisons=build.comparisons(rows))).set_index("id")
    assert table.loc["C19", "verdict"] == "no difference (every difference is 0)"


def test_all_verdicts_are_of_the_five_kinds(build):
    means = {(m, "focus"): v for m, v in {"vanilla": 0.5, "mech": 0.6, "teacher": 0.7}.items()}
    table = judge_all(build.evidence(scores=build.scores(means)))
    kinds = table["verdict"].str.replace(r" \(.*", "", regex=True)
    assert set(kinds) <= set(VERDICTS)
    untested = table[kinds == VERDICTS[-1]]
    assert all(math.isnan(value) for value in untested["effect"])


def test_a_claim_number_is_given_once():
    with pytest.raises(ValueError, match="twice"):
        claim(claims()[0].id)(lambda evidence: None)


def test_unknown_table_is_a_mistake_and_not_a_missing_result(build):
    with pytest.raises(KeyError):
        build.evidence().table("no_such_table")


def test_empty_table_counts_as_absent(build):
    scores = build.scores({("mech", "focus"): 0.6}).iloc[:0]
    with pytest.raises(NotTested, match="scores"):
        Evidence(build.design, {"scores": scores}).table("scores")


def test_table_of_another_shape_is_named_with_its_missing_columns(build, tmp_path):
    path = tmp_path / "scores.parquet"
    write_table(path, build.scores({("mech", "focus"): 0.6}).drop(columns="seed"))
    with pytest.raises(InputError, match=r"scores\.parquet has no column seed"):
        read_evidence({"scores": path}, build.design)


def test_every_table_has_a_name_for_people():
    assert set(CONTENT) | {"predictions"} == set(TABLE_COLUMNS)
