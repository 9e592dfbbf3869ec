"""The joined report: rows in the paper's order, references stated, verdicts across members."""

from __future__ import annotations

import html

import pandas as pd
import pytest

from mechdistill.errors import InputError
from mechdistill.report.claims.registry import COLUMNS as CLAIM_COLUMNS
from mechdistill.report.joined.budgets import detectable_table, joined_times, out_of_line_rows
from mechdistill.report.joined.claims import Joined, claim_matrix, joined_claims, verdict_counts
from mechdistill.report.joined.findings import Story, findings
from mechdistill.report.joined.page import JoinedPage, render
from mechdistill.report.joined.places import Place, places
from mechdistill.report.joined.tables import (
    ALL_STUDENTS,
    PLANS,
    read_measures,
    tidy_table,
    wide_table,
)
from mechdistill.report.metrics import TABLE1, method_name
from mechdistill.report.tables import COLUMNS, to_csv, to_html, to_latex
from mechdistill.report.verdicts import Verdict
from mechdistill.significance.students import COLUMNS as CONTRAST_COLUMNS
from mechdistill.significance.students import GAIN, LARGER

METHODS = ("vanilla", "cwt", "mech", "p1_only")
PLACES = places(
    ("a", "b", "c", "d"),
    {"a": "codes", "b": "codes", "c": "titles", "d": "titles"},
    dict(zip("abcd", ["small", "large"] * 2)),
)


def measures(level: float, best: str = "cwt") -> pd.DataFrame:
    rows = []
    for metric in TABLE1:
        for number, method in enumerate((*METHODS, "teacher")):
            value = 0.9 if method == "teacher" else level + 0.01 * number
            rows.append({"method": method, "metric": metric.key, "value": value, "baseline": ""})
        for baseline in ("vanilla", "cwt"):
            rows.append(
                {
                    **{"method": "mech", "metric": metric.key, "baseline": baseline, "gain": 0.01},
                    **{"is_mark_reference": baseline == best, "mark": "up"},
                }
            )
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    filled = {"n_undefined": 0, "degenerate_output": "", "mark": "", "is_mark_reference": False}
    return frame.fillna(filled)


MEASURES = {place: measures(0.1 * number) for number, place in enumerate(PLACES)}


def contrast(data_set: str, metric: str, difference: float, **more) -> dict:
    usual = {
        **{"question": GAIN, "method": "mech", "baseline": "vanilla", "students": "small; large"},
        **{"ci_low": difference - 0.02, "ci_high": difference + 0.02, "standard_error": 0.01},
        **{"mark": "up", "n_documents": 40, "n_undefined": 0, "n_seeds": 5, "n_students": 2},
    }
    own = {"data_set": data_set, "metric": metric, "difference": difference}
    return usual | own | more


def contrasts(first: float = 0.1, second: float = 0.3, larger: float = 0.1) -> pd.DataFrame:
    rows = []
    for metric in TABLE1:
        for data_set, size in (("codes", first), ("titles", second)):
            gain = metric.better * size
            rows.append(contrast(data_set, metric.key, gain))
            rows.append(contrast(data_set, metric.key, gain / 2, baseline="vanilla,cwt"))
            rows.append(contrast(data_set, metric.key, gain / 4, baseline="cwt"))
            up = metric.better * larger
            named = {"question": LARGER, "baseline": "mech", "students": "large; small"}
            rows.append(contrast(data_set, metric.key, up, **named))
    return pd.DataFrame(rows).reindex(columns=["data_set", *CONTRAST_COLUMNS])


def claims(verdict: str) -> pd.DataFrame:
    rows = [
        {"id": id, "statement": f"Statement {id}", "verdict": v, "detail": "told"}
        for id, v in (("C01", verdict), ("C02", "holds"), ("C29", "not tested in this study"))
    ]
    return pd.DataFrame(rows, columns=list(CLAIM_COLUMNS))


JUDGED = {
    place: claims("holds" if place.member == "a" else "no difference (detectable difference 0.1)")
    for place in PLACES
}
SEEDS = dict.fromkeys(PLACES, 5)


def across(table: pd.DataFrame, data_sets=("codes", "titles")) -> dict[str, pd.Series]:
    found = joined_claims(JUDGED, SEEDS, Joined(table, data_sets), "all-of-it", "c.parquet")
    own = found[found["member"] == "all-of-it"]
    return {row["id"]: row for _, row in own.iterrows()}


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, ["codes, small", "codes, large", "codes, students averaged"]),
        (2, ["titles, small", "titles, large", "titles, students averaged"]),
        (
            3,
            [
                *("titles, small", "titles, large", "titles, students averaged"),
                *("codes, small", "codes, large", "codes, students averaged"),
            ],
        ),
        (5, ["codes, small", "codes, large", "titles, small", "titles, large"]),
    ],
)
def test_blocks_stand_in_the_papers_order(number: int, expected: list[str]) -> None:
    table = wide_table(PLANS[number - 1], MEASURES, contrasts())
    assert [line.name for line in table.lines if line.kind == "group"] == expected


def test_rows_and_columns_of_the_first_and_the_last_table() -> None:
    first = wide_table(PLANS[0], MEASURES, contrasts())
    named = [line.name for line in first.lines[1:4]]
    assert named == [method_name(m) for m in ("vanilla", "cwt", "mech")]
    assert [line.name for line in first.lines[-3:]] == [
        "average gain over Vanilla",
        "average gain over the mean of Vanilla, CWT (adapted)",
        "Teacher",
    ]
    fourth = wide_table(PLANS[3], MEASURES, contrasts())
    assert [metric.key for metric in fourth.metrics] == ["sharp", "align", "loop", "help"]
    assert [line.kind for line in fourth.lines[:3]] == ["group", "value", "proposed"]
    assert "average gain over the mean" not in str(fourth)
    fifth = wide_table(PLANS[4], MEASURES, contrasts())
    assert [line.name for line in fifth.lines[1:3]] == [
        method_name("mech"),
        method_name("p1_only"),
    ]


def test_average_gains_come_with_interval_mark_and_reference() -> None:
    table = wide_table(PLANS[0], MEASURES, contrasts())
    gain = next(line for line in table.lines if line.name == "average gain over Vanilla")
    assert (gain.cells[0].text, gain.cells[0].below) == ("+0.100", "[0.080, 0.120]")
    assert (gain.cells[0].mark, gain.cells[0].tone) == ("▲", "good")
    rows = tidy_table(PLANS[0], MEASURES, contrasts())
    own = rows[(rows["student"] == ALL_STUDENTS) & (rows["metric"] == "confusion")]
    assert dict(zip(own["baseline"], own["gain"])) == {
        "vanilla": -0.1,
        "vanilla,cwt": -0.05,
        "cwt": -0.025,
    }
    assert set(own["better"]) == {-1}


def test_marks_are_those_of_each_data_set_and_student() -> None:
    changed = MEASURES | {PLACES[1]: measures(0.1, best="vanilla").assign(mark="")}
    table = wide_table(PLANS[0], changed, contrasts())
    mech = [line for line in table.lines if line.kind == "proposed"]
    assert [line.cells[0].mark for line in mech] == ["▲", ""]
    assert "(codes, small: CWT (adapted); codes, large: Vanilla)" in table.caption


def test_a_missing_data_set_leaves_its_table_empty_and_says_so() -> None:
    one = {place: frame for place, frame in MEASURES.items() if place.data_set == "codes"}
    table = wide_table(PLANS[1], one, contrasts())
    assert (table.lines, "Not in this study." in table.caption) == ((), True)
    assert tidy_table(PLANS[1], one, contrasts()).empty
    assert "codes, large" in to_html(wide_table(PLANS[2], one, contrasts()))


def test_teachers_that_differ_stand_apart() -> None:
    other = MEASURES[PLACES[1]].copy()
    other.loc[other["method"] == "teacher", "value"] = 0.8
    table = wide_table(PLANS[0], MEASURES | {PLACES[1]: other}, contrasts())
    assert [line.name for line in table.lines if line.kind == "teacher"] == [
        "Teacher of small",
        "Teacher of large",
    ]


def test_latex_and_html_hold_headings_over_all_columns() -> None:
    table = wide_table(PLANS[0], MEASURES, contrasts())
    assert r"\multicolumn{9}{l}{\emph{codes, small}} \\" in to_latex(table)
    assert '<th scope="rowgroup" colspan="9">codes, small</th>' in to_html(table)


def test_measures_of_another_run_are_refused(tmp_path) -> None:
    path = tmp_path / "measures.csv"
    path.write_text(to_csv(measures(0.1)))
    own = {PLACES[0]: str(path)}
    assert set(read_measures(own, {"a": METHODS})[PLACES[0]]["method"]) == {*METHODS, "teacher"}
    with pytest.raises(InputError, match=r"measures\.csv has no rows of morsd, which the study a"):
        read_measures(own, {"a": (*METHODS, "morsd")})


def test_smaller_gains_on_the_first_data_set_are_judged_over_both() -> None:
    assert across(contrasts(0.1, 0.3))["C29"]["verdict"] == Verdict.HOLDS
    assert across(contrasts(0.3, 0.1))["C29"]["verdict"] == Verdict.DOES_NOT_HOLD
    near = across(contrasts(0.1, 0.11))["C29"]
    assert near["verdict"].startswith("no difference (detectable")
    # two independent differences: the root of the summed squares of their standard errors
    assert near["ci_high"] - near["ci_low"] == pytest.approx(2 * 1.959964 * 0.01 * 2**0.5)
    assert "8 of 8 are smaller on codes" in near["detail"]
    assert across(contrasts(), ("codes",))["C29"]["verdict"] == Verdict.NOT_TESTED


def test_larger_students_are_judged_on_every_metric_in_its_direction() -> None:
    assert across(contrasts(larger=0.1))["C31"]["verdict"] == Verdict.HOLDS
    assert across(contrasts(larger=-0.1))["C31"]["verdict"] == Verdict.DOES_NOT_HOLD
    gains = contrasts()
    none = across(gains[gains["question"] == GAIN])["C31"]
    assert none["verdict"] == Verdict.NOT_TESTED
    assert none["detail"] == "The study has one student size."


def test_verdicts_stand_side_by_side_and_are_counted() -> None:
    table = joined_claims(JUDGED, SEEDS, Joined(contrasts(), ("codes", "titles")), "all", "c")
    rows = {row["id"]: row["cells"] for row in claim_matrix(table.fillna(""), [*"abcd", "all"])}
    assert [cell["verdict"] for cell in rows["C02"]] == ["holds"] * 4 + [""]
    assert rows["C01"][1]["css"] == "no-difference"
    assert verdict_counts(table, "a")[Verdict.HOLDS] == 2
    assert verdict_counts(table, "b")[Verdict.NO_DIFFERENCE] == 1
    assert set(table.loc[table["member"] == "a", "seeds"]) == {5}


def test_times_are_ratios_to_plain_distillation_by_method() -> None:
    runs = pd.DataFrame(
        [("vanilla", s, 10.0, 1.0, 500.0) for s in (0, 1)]
        + [("mech", s, 12.0 + s, 1.2 + s / 10, 510.0 + s) for s in (0, 1)],
        columns=["method", "seed", "wall_seconds", "wall_seconds_ratio", "peak_memory_mib"],
    )
    found = joined_times({PLACES[0]: runs, PLACES[2]: runs})
    mech = found[(found["method"] == "mech") & (found["data_set"] == "titles")].iloc[0]
    assert (mech["ratio"], mech["ratio_low"], mech["ratio_high"]) == pytest.approx((1.25, 1.2, 1.3))
    assert (mech["n_seeds"], mech["peak_memory_mib"]) == (2, 511.0)


def test_budgets_out_of_line_are_listed_once_a_method() -> None:
    flagged = pd.DataFrame(
        [("vanilla", 0, None), ("morsd", 0, "texts of the teacher x 4.00"), ("morsd", 1, "x; y")],
        columns=["method", "seed", "out_of_line"],
    ).assign(data_set="codes", student="small")
    (row,) = out_of_line_rows(flagged)
    assert row["method"] == method_name("morsd")
    assert (row["seeds"], row["flags"]) == ("0, 1", "texts of the teacher x 4.00; x; y")


def compared(detectable: float) -> pd.DataFrame:
    rows = [
        {
            **{"metric": metric, "method": method, "baseline": "cwt", "is_best_baseline": best},
            **{"detectable": detectable, "n_documents": 40, "n_seeds": 5},
        }
        for metric in ("focus", "bleu_corpus")
        for method, best in (("mech", True), ("mech", False), ("p1_only", False))
    ]
    return pd.DataFrame(rows)


def test_detectable_differences_are_those_from_the_best_baseline() -> None:
    found = detectable_table({PLACES[0]: compared(0.1), PLACES[3]: compared(0.2)})
    assert list(found["metric"]) == ["focus", "focus"]
    assert list(found["detectable"]) == [0.1, 0.2]
    assert list(found["member"]) == ["a", "d"]


@pytest.fixture
def story() -> Story:
    table = contrasts()
    budgets = pd.DataFrame({"method": ["morsd"], "seed": [0], "out_of_line": ["x 4.00"]})
    return Story(
        study="all-of-it",
        notes={"codes": "notes with codes", "titles": "texts with titles"},
        methods=dict.fromkeys(PLACES, 4),
        seeds=SEEDS,
        left_out={"e": "the package is not installed. What to do: <install> it"},
        measures=MEASURES,
        contrasts=table,
        claims=joined_claims(JUDGED, SEEDS, Joined(table, ("codes", "titles")), "all-of-it", "c"),
        detectable=detectable_table({place: compared(0.1) for place in PLACES}),
        budgets=budgets.assign(data_set="codes", student="small"),
    )


def test_findings_name_members_gains_verdicts_and_what_was_left_out(story: Story) -> None:
    text = "\n".join(findings(story))
    for said in (
        "Study all-of-it: codes (notes with codes) with students small, large; titles",
        "4 methods x 5 seeds each.",
        "Left out: e: the package is not installed.",
        "codes, students averaged, mech minus the mean of Vanilla, CWT (adapted): Foc +0.050 [",
        "codes, small: of 8 metrics, mech is shown better than CWT (adapted)",
        "in 7 (Foc, LAS, F1, Sharp, Align, Loop, Help), worse in 1 (Conf).",
        "Claims, codes, small: 2 hold, 1 were not tested.",
        "Claims that hold in each of the 4 members: C02; that do not hold in any: none.",
        "C29, gains are smaller on MIMIC-IV than on WikiSeeAlso: holds.",
        "codes, small Foc 0.100",
        "Budgets out of line with plain distillation: MoRSD (adapted).",
    ):
        assert said in text, said


def test_the_page_shows_what_was_left_out_and_the_papers_numbers(story: Story) -> None:
    reports = {place: f"../../{place.member}/report/report.html" for place in PLACES}
    tables = [to_html(wide_table(plan, MEASURES, contrasts())) for plan in PLANS]
    page = html.unescape(render(JoinedPage(story, findings(story), tables, reports)))
    assert "Left out: e" in page
    assert "<install> it" in page
    below = page[page.index("Printed Table 2") : page.index("Printed Table 3")]
    assert "LF-WikiSeeAlso-320K, LLaMA3-7B" in below
    assert "titles, small (this study, c)" in below
    assert "codes, small (this study" not in below
    third = page[page.index("Printed Table 3") : page.index("Printed Table 4")]
    assert third.index("titles, large (this study") < third.index("codes, small (this study")


def test_a_place_is_called_by_data_set_and_student() -> None:
    assert Place("a", "codes", "small").title == "codes, small"
