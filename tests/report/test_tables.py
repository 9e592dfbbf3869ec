import csv
import html.parser
import io
import re

import pandas as pd
import pytest

from mechdistill.report.formats import count, interval, percent, plain, signed
from mechdistill.report.links import row_anchor
from mechdistill.report.metrics import TABLE1, method_name
from mechdistill.report.page.rows import undefined_line
from mechdistill.report.resampling import Bootstrap
from mechdistill.report.tables import build, from_csv, tidy, to_csv, to_html, to_latex, to_metrics
from mechdistill.report.values import method_values
from mechdistill.significance.measures import corpus_measures, document_measures

METHODS = ("teacher", "vanilla", "vanilla_positions", "mech", "p1_only")


@pytest.fixture
def frame(build_):
    means = {
        (m, metric): 0.4 + 0.05 * i
        for i, m in enumerate(METHODS)
        for metric in ("focus", "confusion")
    }
    values = method_values(document_measures(build_.scores(means)), Bootstrap(100, 0))
    comparisons = build_.comparisons(
        [
            ("focus", "mech", "vanilla", 0.10, 0.05, 0.15, "up"),
            ("focus", "mech", "vanilla_positions", 0.05, -0.01, 0.11, ""),
            ("confusion", "mech", "vanilla", 0.10, 0.02, 0.15, "up"),
            ("confusion", "mech", "vanilla_positions", -0.05, -0.09, -0.01, "down"),
            ("focus", "p1_only", "vanilla", 0.2, 0.1, 0.3, "up"),
            ("focus", "mech", "teacher", -0.2, -0.3, -0.1, "down"),
        ],
        best="vanilla_positions",
    )
    return tidy(values, comparisons, {})


@pytest.fixture
def build_(build):
    return build


def cell(table, line, metric):
    column = [m.key for m in table.metrics].index(metric)
    return next(row for row in table.lines if row.name == line).cells[column]


def test_marks_are_against_the_best_baseline_and_gains_against_each(frame):
    table = build(frame, TABLE1, "Title.")
    mech = "Mech (phases 1 and 2)"
    assert cell(table, mech, "focus").mark == ""
    assert (cell(table, mech, "confusion").mark, cell(table, mech, "confusion").tone) == (
        "▼",
        "good",
    )
    over_vanilla = cell(table, "gain over Vanilla", "focus")
    assert (over_vanilla.text, over_vanilla.mark, over_vanilla.tone) == ("+0.100", "▲", "good")
    worse = cell(table, "gain over Vanilla", "confusion")
    assert (worse.mark, worse.tone) == ("▲", "bad")
    assert "best baseline on the validation notes (Vanilla + positions)" in table.caption


def test_lines_stand_in_the_papers_order(frame):
    kinds = [line.kind for line in build(frame, TABLE1, "").lines]
    assert kinds == ["value", "value", "value", "proposed", "gain", "gain", "teacher"]


def test_average_gain_is_over_the_papers_baselines_alone(build_):
    rivals = ("vanilla_margin", "cwt", "vanilla")
    means = {(m, "focus"): 0.4 for m in (*rivals, "mech")}
    values = method_values(document_measures(build_.scores(means)), Bootstrap(100, 0))
    gains = {"vanilla": 0.1, "cwt": 0.3, "vanilla_margin": 5.0}
    rows = [("focus", "mech", b, gain, 0.0, 1.0, "") for b, gain in gains.items()]
    table = build(tidy(values, build_.comparisons(rows, best="cwt"), {}), TABLE1, "")
    assert cell(table, "average gain", "focus").text == "+0.200"
    assert cell(table, "average gain", "confusion").text == "–"
    assert "mech minus the mean of Vanilla, CWT (adapted)" in table.caption
    names = [line.name for line in table.lines if line.kind == "value"]
    assert names == ["Vanilla", "CWT (adapted)", "Vanilla + margin loss"]


def test_missing_metric_shows_a_dash_and_is_named(frame):
    table = build(frame, TABLE1, "")
    assert cell(table, "Teacher", "las").text == "–"
    assert "Not measured in this study: LAS" in table.caption


def test_notes_without_a_score_are_counted_beside_the_value(build_):
    scores = build_.scores({("mech", "confusion"): 0.4, ("mech", "focus"): 0.5}, seeds=2)
    gone = (scores["metric"] == "confusion") & scores["example"].isin(scores["example"][:3])
    scores.loc[gone, "value"] = float("nan")
    gains = build_.comparisons([("focus", "mech", "vanilla", 0.1, 0, 0.2, "")], best="vanilla")
    frame = tidy(method_values(document_measures(scores), Bootstrap(100, 0)), gains, {})
    table = build(frame, TABLE1, "")
    name = "Mech (phases 1 and 2)"
    assert cell(table, name, "confusion").left_out == 6
    assert cell(table, name, "focus").left_out == 0
    assert "<small>6 left out</small>" in to_html(table)
    assert "$ 6 left out}" in to_latex(table)
    assert "score is undefined" in table.caption
    assert "Mech (phases 1 and 2) 6 of 48." in undefined_line(frame)


def test_tidy_csv_separates_values_and_gains(frame):
    back = pd.read_csv(io.StringIO(to_csv(frame)))
    values, gains = back[back["value"].notna()], back[back["gain"].notna()]
    assert len(values) == len(METHODS) * 2
    assert len(gains) == 4
    assert gains["value"].isna().all()
    assert set(gains.loc[gains["is_mark_reference"], "baseline"]) == {"vanilla_positions"}
    assert set(back.loc[back["metric"] == "confusion", "better"]) == {-1}


class Parser(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.cells, self.rows = [], 0, []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "tr":
            self.rows.append(self.cells)
            self.cells = 0


def test_metrics_are_the_values_without_gains_and_missing_numbers(frame):
    frame.loc[frame["method"] == "teacher", "ci_low"] = float("nan")
    numbers = to_metrics(frame)
    assert set(numbers) == set(METHODS)
    own = frame[(frame["method"] == "mech") & (frame["metric"] == "focus")].iloc[0]
    assert numbers["mech"]["focus"] == {name: own[name] for name in ("value", "ci_low", "ci_high")}
    assert set(numbers["teacher"]["confusion"]) == {"value", "ci_high"}


def test_html_is_well_formed_and_rectangular(frame):
    parser = Parser()
    parser.feed(to_html(build(frame, TABLE1, "a < b & c")))
    assert parser.open == []
    assert set(parser.rows) == {len(TABLE1) + 1}


def test_each_number_links_to_the_row_that_it_was_rounded_from(frame):
    text = to_html(build(frame, TABLE1, ""))
    rows = list(csv.DictReader(io.StringIO(to_csv(frame))))
    places = {row_anchor(row) for row in rows}
    assert len(places) == len(rows)
    shown = {row_anchor(row) for row in rows if row["metric"] in ("focus", "confusion")}
    shown -= {"p1_only.vanilla.focus", "mech.teacher.focus"}
    linked = re.findall(r'<td><a href="\.\./audit/trace\.html#([^"]+)">([^<]+)</a>', text)
    assert {place for place, _ in linked} == shown & places
    (over,) = (row for row in rows if row_anchor(row) == "mech.vanilla.focus")
    assert dict(linked)["mech.vanilla.focus"] == "+0.100"
    assert float(over["gain"]) == pytest.approx(0.1)


def test_latex_rows_have_equal_numbers_of_columns(frame):
    text = to_latex(build(frame, TABLE1, "50 % & more"))
    body = text.split("\\midrule", 1)[1].split("\\bottomrule")[0]
    rows = [row for row in body.replace("\\midrule", "").split("\\\\") if row.strip()]
    assert {row.count("&") for row in rows} == {len(TABLE1)}
    assert "50 \\% \\& more" in text
    assert text.count("{") == text.count("}")


def test_corpus_values_and_intervals_come_from_counts(build):
    rows = [
        ("m", "mech", seed, f"n{i}", ["A"], ["A"] if i < 6 else ["B"], "ok")
        for seed in range(2)
        for i in range(10)
    ]
    predictions = pd.DataFrame(
        rows, columns=["model", "method", "seed", "example", "gold", "predicted", "status"]
    )
    scores = build.scores({("mech", "focus"): 0.5}).iloc[:0]
    measures = corpus_measures(predictions, scores, ["A", "B"], [["A"]] * 4, [1])
    values = method_values(measures, Bootstrap(300, 0)).set_index("metric")
    micro = values.loc["micro_f1"]
    assert micro["value"] == pytest.approx(0.6)
    assert micro["ci_low"] < 0.6 < micro["ci_high"]
    assert micro["n_seeds"] == 2


def test_single_seed_and_many_seeds_both_have_values(frame):
    values = frame[frame["value"].notna()].set_index(["method", "metric"])
    assert values.loc[("teacher", "focus"), "n_seeds"] == 1
    assert values.loc[("mech", "focus"), "n_seeds"] == 3


def test_same_input_same_bytes(frame):
    table = build(frame, TABLE1, "")
    assert to_html(table) == to_html(build(frame.copy(), TABLE1, ""))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.7341, "0.734"),
        (12.34, "12.3"),
        (1234.5, "1234"),
        (0.00123, "0.0012"),
        (0.0, "0"),
        (-0.0004, "-0.0004"),
        (-8e-17, "0"),
        (float("nan"), "–"),
        (None, "–"),
    ],
)
def test_plain_numbers(value, text):
    assert plain(value) == text


def test_signs_intervals_and_counts():
    assert signed(0.12) == "+0.120"
    assert signed(-0.12) == "-0.120"
    assert interval(0.1, 0.2) == "[0.100, 0.200]"
    assert interval(float("nan"), 0.2) == ""
    assert percent(39.4) == "39 %"
    assert percent(-0.2) == "0 %"
    assert count(1, "note") == "1 note"
    assert count(2, "copy", "copies") == "2 copies"


def test_interval_that_misses_its_value_is_not_given(build):
    """Every note has a label of its own: a resample lacks a third of them."""
    labels = [f"L{i}" for i in range(20)]
    rows = [("m", "mech", 0, label, [label], [label], "ok") for label in labels]
    predictions = pd.DataFrame(
        rows, columns=["model", "method", "seed", "example", "gold", "predicted", "status"]
    )
    scores = build.scores({("mech", "focus"): 0.5}).iloc[:0]
    measures = corpus_measures(predictions, scores, labels, [[x] for x in labels], [1])
    values = method_values(measures, Bootstrap(100, 0)).set_index("metric")
    assert values.loc["macro_f1_all", "value"] == 1.0
    assert pd.isna(values.loc["macro_f1_all", "ci_low"])
    assert values.loc["micro_f1", "ci_low"] == 1.0


@pytest.mark.parametrize("kind", ["no labels", "all labels", "constant output (1 of 3 seeds)"])
@pytest.mark.parametrize("method", ["teacher", "vanilla", "mech", "p1_only"])
def test_a_degenerate_model_is_called_so(build_, kind, method):
    scores = build_.scores({(m, "focus"): 0.4 for m in METHODS})
    values = method_values(document_measures(scores), Bootstrap(100, 0))
    gains = build_.comparisons([("focus", "mech", "vanilla", 0.1, 0.0, 0.2, "")])
    frame = from_csv(to_csv(tidy(values, gains, {method: kind})))
    table = build(frame, TABLE1, "")

    assert [line.name for line in table.lines if line.degenerate] == [method_name(method)]
    assert f"<br><small>degenerate: {kind}</small></th>" in to_html(table)
    assert f"degenerate: {kind}" in to_latex(table)
    assert "its scores say nothing about reasoning" in table.caption


def test_no_other_model_is_called_degenerate(frame):
    assert "degenerate" not in to_html(build(frame, TABLE1, ""))
