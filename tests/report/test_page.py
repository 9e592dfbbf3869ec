import html.parser
import json
import re
from dataclasses import replace

import pandas as pd
import pytest

from mechdistill.report.attention import AttendedTrace, Word
from mechdistill.report.claims import judge_all
from mechdistill.report.claims.registry import read_claims, to_csv
from mechdistill.report.elicitation import elicitation_rows
from mechdistill.report.evidence import Evidence
from mechdistill.report.findings import Story, causal_ranking, findings
from mechdistill.report.metrics import TABLE1
from mechdistill.report.page import Page, render
from mechdistill.report.page.event_attention_rows import event_attention_rows
from mechdistill.report.page.knock_in_rows import knock_in_rows
from mechdistill.report.page.rows import (
    budget_rows,
    claim_rows,
    head_effect_rows,
    patching_rows,
    set_rows,
    status_rows,
)
from mechdistill.report.tables import build as build_table
from mechdistill.report.tables import from_csv, tidy, to_html
from mechdistill.report.tables import to_csv as table_csv
from mechdistill.report.values import method_values
from mechdistill.report.worked_example import WorkedExample
from mechdistill.significance.measures import document_measures

VOID = {"meta", "img", "br", "link"}


def attended(head):
    note = [
        Word("History:", "", 0.1),
        Word("leg <swelling>", "evidence", 0.4),
        Word("left", "cue", 0.2),
    ]
    reasoning = [Word("#1", "", 0.1), Word("gout", "anchor", 0.1), Word("M10.1", "kept", 0.1)]
    return AttendedTrace("test-00000", head, tuple(note + reasoning), 3)


@pytest.fixture(scope="module")
def page(full, tmp_path_factory):
    figures, tmp_path = {}, tmp_path_factory.mktemp("figures")
    for number in (1, 4, 5, 7, 8):
        figures[number] = tmp_path / f"figure{number}.png"
        figures[number].write_bytes(b"\x89PNG" + bytes([number]))
    claims = judge_all(full)
    values = method_values(document_measures(full.tables["scores"]), full.design.bootstrap)
    measures = tidy(values, full.tables["comparisons"], {})
    worked = WorkedExample(
        attended((0, 1)),
        attended((2, 3)),
        (("M10.1", "M10.1 left gout"),),
        (("M10.2", "M10.2 right gout"),),
        ("M10.1",),
        "ok",
    )
    return Page(
        evidence=full,
        claims=claims,
        findings=findings(Story(full, claims, "invented notes", "10 candidates of 40 labels")),
        candidates="10 candidates of 40 labels",
        worked=worked,
        table1=to_html(build_table(measures, TABLE1, "Table 1.")),
        measures=measures,
        figures=figures,
        definitions={
            "bleu": "nrefs:1",
            "text_encoder": {"name": "mini", "sha256": "x"},
            "labels_in_macro_f1": {"gold_present": 12},
            "labels_by_training_frequency": {
                "tail": {
                    "labels": 40,
                    "gold_in_test": 13,
                    "least_training_notes": 0,
                    "most_training_notes": 2,
                }
            },
            "answers_outside_label_space": {"teacher": 0},
        },
        parameters={
            **{"seed": 7, "patching": {"false_discovery": 0.05}},
            "distil": {"methods": ["vanilla"], "student_tokenizer": None},
        },
        decisions=pd.DataFrame(
            {
                "split": ["test"] * 2,
                "segment": "reasoning",
                "kind": ["region", "departure"],
                "notes": 3,
                "with_event": [3, 0],
                "events": [7, 0],
                "first": [4, 0],
                "foils": [4.26, float("nan")],
                "margin": [2.5, float("nan")],
            }
        ),
        head_effects=pd.DataFrame(
            {
                "kind": "region",
                "segment": "reasoning",
                "layer": [0, 0, 1, 1],
                "head": [0, 1, 0, 1],
                "n": 3,
                "decisions": 4,
                "margin": 9.5,
                "excess": [0.1, 2.25, 3.5, -1.0],
                "above_null": [False, True, True, False],
            }
        ),
        attribution=pd.DataFrame(
            {
                **{"kind": ["region"], "segment": "reasoning"},
                **{"spearman": 0.61, "ci_low": 0.4, "ci_high": 0.75},
                **{"captured": 0.8, "captured_low": 0.6, "captured_high": 0.9},
            }
        ),
        head_sets=pd.DataFrame(
            {
                **{"kind": "region", "segment": "reasoning", "bin": 2, "n": 3},
                "mode": ["ablated", "ablated", "kept", "kept"],
                "ranking": ["top", "random", "top", "random"],
                "share": [0.8, 0.1, 0.75, 0.04],
                **{"ci_low": 0.6, "ci_high": 0.9, "notes": [1.0, None, 0.67, None]},
            }
        ),
        knock_in=pd.DataFrame(
            {
                **{"kind": "region", "segment": "reasoning", "bin": 2, "n": 3},
                "null": ["", "", "same_way"],
                "ranking": ["top", "random", "top"],
                "share": [0.62, 0.11, 0.03],
                **{"ci_low": 0.51, "ci_high": 0.73, "distance": 8.25, "carried": 0.5},
                **{"carried_low": 0.25, "carried_high": 0.75, "carried_all": 1.0},
            }
        ),
        knock_in_pairs=pd.DataFrame(
            {
                **{"kind": ["region", "departure"], "segment": "reasoning", "notes": [4, 2]},
                **{"recipients": [3, 0], "pairs": [5, 0], "recipients_with_null": [2, 0]},
            }
        ),
        event_attention=pd.DataFrame(
            {
                **{"kind": "region", "segment": "reasoning", "heads": 4, "n": 3, "n_other": 2},
                "place": ["chosen_region", "evidence"],
                **{"mass": [0.41, 0.13], "ci_low": 0.11, "ci_high": 0.43, "other": [0.07, 0.02]},
                **{"other_low": 0.01, "other_high": 0.08, "uniform": [0.05, 0.03]},
            }
        ),
        elicitation_probe=pd.DataFrame(
            {
                **{"offset": [2, 0, 0], "layer": [2, 2, 3], "n": 7, "notes": 3},
                **{"accuracy": [0.41, 0.93, 1.0], "ci_low": 0.3, "ci_high": 0.95},
                **{"shuffled": 0.07, "majority": 0.11, "gain": [0.3, 0.82, 0.89]},
                **{"gain_low": -0.01, "gain_high": 0.9},
            }
        ),
        elicitation_sets=pd.DataFrame(
            {
                **{"offset": [2], "n_heads": 16, "eliciting": 0, "own": 5, "shared": 0},
                **{"expected": 0.0, "p": 1.0, "depth": float("nan"), "own_depth": 0.72},
                **{"note_mass": float("nan"), "note_low": float("nan"), "note_high": float("nan")},
                **{"uniform": 0.48, "own_mass": 0.55},
            }
        ),
        data_card="# Data card\nNotes are synthetic & <fake>.",
        origin=None,
    )


class Outline(html.parser.HTMLParser):
    """Checks nesting; collects ids, links and what would be fetched."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.fetched = [], [], [], []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])
        if "src" in found:
            self.fetched.append(found["src"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def outline(text):
    parser = Outline()
    parser.feed(text)
    return parser


def test_the_papers_numbers_stand_below_a_word_of_warning(page):
    text = render(page)
    assert text.count("<summary>Printed Table") == 4
    assert "no verdict, mark or test uses them" in text
    assert "<td>0.62 ▲ +0.09</td>" in text


def test_frequencies_of_the_labels_are_told(page):
    told = "tail 40 labels of 0 to 2 training notes, 13 of them gold in the test notes"
    assert told in render(page)


def test_page_is_well_formed_and_fetches_nothing(page):
    text = render(page)
    seen = outline(text)
    assert seen.open == []
    assert len(seen.ids) == len(set(seen.ids))
    beside = {link for link in seen.links if link.startswith("../audit/")}
    assert all(link[1:] in seen.ids for link in seen.links if link not in beside)
    assert {"../audit/audit.html", "../audit/trace.html", "../audit/trace.html#figure5"} <= beside
    assert len(seen.fetched) == 5
    assert all(source.startswith("data:image/png;base64,") for source in seen.fetched)
    assert not re.search(r"https?://|@import|url\(", text)


def test_page_reads_from_the_question_to_the_making(page):
    seen = outline(render(page))
    sections = [
        i
        for i in seen.ids
        if i in ("asked", "example", "findings", "tables", "figures", "claims", "made")
    ]
    assert sections == ["asked", "example", "findings", "tables", "figures", "claims", "made"]


def test_page_shows_every_claim_with_its_verdict(page):
    text = render(page)
    for row in page.claims.to_dict("records"):
        assert f'<tr id="{row["id"]}"' in text
    assert text.count('class="verdict ') == len(page.claims)


def test_words_of_the_note_are_shaded_and_escaped(page):
    text = render(page)
    assert "leg &lt;swelling&gt;" in text
    assert re.search(
        r'class="evidence"\s+style="background: rgba\(230,159,0,1.000\)" title="40 %"', text
    )
    assert "Notes are synthetic &amp; &lt;fake&gt;." in text


def test_page_has_no_clock_and_is_the_same_twice(page):
    assert render(page) == render(page)
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b|\d\d:\d\d:\d\d", render(page))


def test_trace_without_refinement_is_said_so(page):
    bare = replace(page, worked=replace(page.worked, refine=None, status="no answer"))
    text = render(bare)
    assert "no refinement position was found" in text
    assert "did not parse: no answer" in text


def test_heads_beyond_their_nulls_are_named_with_their_depth(page):
    (row,) = head_effect_rows(page.head_effects, page.attribution)
    assert row["named"] == "L1H0 +3.50, L0H1 +2.25"
    assert (row["beyond"], row["heads"], row["depth"]) == (2, 4, "0.75")
    assert "2 of 4" in render(page) and "L1H0 +3.50" in render(page)
    none = page.head_effects.assign(above_null=False)
    (row,) = head_effect_rows(none, page.attribution)
    assert (row["beyond"], row["named"], row["depth"]) == (0, "–", "–")


def test_sets_of_heads_are_shown_beside_random_ones(page):
    (row,) = set_rows(page.head_sets)
    shown = [row[f"{mode}_{part}"] for mode in ("ablated", "kept") for part in ("top", "random")]
    assert shown == ["80 %", "10 %", "75 %", "4 %"]
    assert (row["ablated_ends"], row["kept_notes"]) == ("[60, 90]", "67 %")
    assert "[60, 90]" in render(page)


def test_decisions_carried_over_are_shown_and_so_is_that_there_is_no_pair(page):
    carried, none = knock_in_rows(page.knock_in, page.knock_in_pairs)
    assert (carried["share"], carried["random"], carried["null"]) == ("62 %", "11 %", "3 %")
    assert (carried["carried"], carried["carried_all"]) == ("50 %", "100 %")
    assert (none["notes"], none["pairs"], none["share"]) == (2, 0, "–")
    assert "62 %" in render(page)


def test_attention_at_decisions_is_shown_by_place(page):
    decided, other, even = event_attention_rows(page.event_attention)
    assert [row["notes"] for row in (decided, other, even)] == [3, 2, 3]
    first, second, third, *rest = decided["cells"]
    assert (first, second["value"]) == ({"value": "0.41", "ends": "[0.11, 0.43]"}, "–")
    assert third["value"] == "0.13" and {cell["value"] for cell in rest} == {"–"}
    assert (other["cells"][0]["value"], even["cells"][2]["value"]) == ("0.07", "0.03")
    assert "0.41<br><small>[0.11, 0.43]" in render(page)
    none = page.event_attention[:0]
    assert "Table 13" not in render(replace(page, event_attention=none))


def test_regions_before_decisions_are_shown_at_the_middle_layer(page):
    at, before = elicitation_rows(page.elicitation_probe, page.elicitation_sets, 4)
    assert (at["offset"], at["accuracy"], at["count"]) == (0, "93 %", "–")
    gain = before["accuracy"], before["gain"], before["gain_ends"]
    assert gain == ("41 %", "+0.30", "[-0.01, 0.90]")
    cells = [before[name] for name in ("count", "own", "depth", "own_depth", "note", "own_note")]
    assert cells == ["0 of 16", "5", "–", "0.72", "–", "55 %"]
    assert "0 of 16" in render(page) and "No\nsuch token" not in render(page)
    bare = replace(page, elicitation_probe=page.elicitation_probe[:0])
    assert "No\nsuch token was found" in render(bare)


def test_restricted_data_show_no_note(page):
    parameters = page.parameters | {"data": {"source": {"restricted": True}}}
    text = render(replace(page, worked=None, parameters=parameters))
    assert "example" not in re.findall(r'(?:id="|href="#)(\w+)"', text)
    assert "swelling" in render(page) and "swelling" not in text
    assert "The notes are the user&#39;s own" in text


def test_ten_findings_each_with_a_number(page):
    assert len(page.findings) == 10
    for line in page.findings:
        assert re.search(r"\d", line), line
        assert "nan" not in line.lower().split(), line
        assert len(line) < 320, line


def test_findings_say_what_is_missing(full):
    bare = Evidence(full.design, {"predictions": full.tables["predictions"]})
    lines = findings(Story(bare, judge_all(bare), "invented notes", "10 candidates of 40 labels"))
    assert len(lines) == 10
    assert sum(line.startswith("Not tested:") for line in lines) >= 7


def test_claims_are_counted_once_each(page):
    numbers = [int(n) for n in re.findall(r"\d+", page.findings[-1])]
    assert numbers[0] == 46 == sum(numbers[1:])


def test_best_predictor_comes_first(full):
    table = causal_ranking(full.tables["causal_agreement"])
    assert list(table.groupby("phase").first()["score"]) == ["cosine", "help"]


def test_patching_rows_take_the_bin_of_a_pools_size(full):
    rows = patching_rows(full.tables["patching_summary"], 4)
    assert len(rows) == 24
    assert {row["bin"] for row in rows} == {4}
    restored = next(r for r in rows if r["site"] == "outputs" and r["direction"] == "denoise")
    assert restored["shares"][0]["text"] == "48 %"
    assert restored["shares"][-1]["text"] == "97 %"


def test_patching_row_says_why_it_has_no_percentage(full):
    summary = full.tables["patching_summary"]
    reversed_ = summary.assign(no_percentage="moves the wrong way", pct_gap=float("nan"))
    first = patching_rows(reversed_, 4)[0]
    assert first["no_percentage"] == "K1 moves the wrong way"
    assert all(share["text"] == "–" for share in first["shares"])
    assert not patching_rows(summary, 4)[0]["no_percentage"]


def test_unparsed_traces_are_counted_by_reason(full):
    rows = status_rows(full.tables["predictions"])
    assert rows[0] == {"method": "Teacher", "traces": 24, "ok": 23, "others": "no answer: 1"}


def test_budgets_carry_no_times(full):
    rows = budget_rows(full.budgets)
    assert len(rows) == 5
    assert rows[0]["target_tokens"] == "100,000"
    assert not any("second" in key for key in rows[0])


def test_claims_survive_the_csv(page, tmp_path):
    path = tmp_path / "claims.csv"
    path.write_text(to_csv(page.claims))
    back = read_claims(path)
    pd.testing.assert_frame_equal(back, page.claims, check_dtype=False)
    numbers = [row["numbers"] for row in claim_rows(back)]
    assert numbers == [row["numbers"] for row in claim_rows(page.claims)]


def test_measures_survive_the_csv(page):
    back = from_csv(table_csv(page.measures))
    assert to_html(build_table(back, TABLE1, "")) == to_html(build_table(page.measures, TABLE1, ""))


def test_what_tokenizers_keep_from_being_compared_is_said_where_they_differ(page):
    own = page.parameters | {"distil": {"student_tokenizer": {"model": "bpe", "vocabulary": 800}}}
    assert "(bpe, 800 tokens at most)" in render(replace(page, parameters=own))
    assert "tokenizer of their own" not in render(page)


def test_parameters_are_listed_in_full(page):
    assert json.dumps(page.parameters, indent=2).replace('"', "&#34;") in render(page)


def test_phase_that_mech_went_without_is_told(full):
    budgets = {key: dict(budget) for key, budget in full.budgets.items()}
    budgets["mech", 1]["left_out"] = ["phase 1: the pool is empty"]
    lines = findings(
        Story(
            replace(full, budgets=budgets),
            judge_all(full),
            "invented notes",
            "10 candidates of 40 labels",
        )
    )
    assert "without: phase 1: the pool is empty in 1 of 3 seeds" in lines[7]
    assert (
        "without"
        not in findings(
            Story(full, judge_all(full), "invented notes", "10 candidates of 40 labels")
        )[7]
    )


@pytest.mark.parametrize(
    ("gone", "told", "untold"),
    [({"p1_only"}, "p2_only", "p1_only"), ({"p1_only", "p2_only"}, "mech", "p2_only")],
)
def test_margins_are_told_of_the_methods_that_were_trained(full, gone, told, untold):
    methods = tuple(method for method in full.design.methods if method not in gone)
    part = replace(full, design=replace(full.design, methods=methods))
    (line,) = (
        line
        for line in findings(
            Story(part, judge_all(full), "invented notes", "10 candidates of 40 labels")
        )
        if line.startswith("Margins")
    )
    assert f"{told} region" in line
    assert untold not in line


def test_heads_ranked_by_other_scores_stand_beside(full):
    summary = full.tables["patching_summary"]
    top = (summary["ranking"] == "top") & (summary["phase"] == 2)
    other = summary[top].assign(ranking="top_help", pct_gap=91.0)
    tables = {**full.tables, "patching_summary": pd.concat([summary, other])}
    lines = findings(
        Story(
            replace(full, tables=tables),
            judge_all(full),
            "invented notes",
            "10 candidates of 40 labels",
        )
    )
    assert lines[3].endswith(
        "of the within-region margin; restored by as many heads ranked by help 91 %."
    )
    assert lines[2].endswith("of the region margin.")
