"""The page that the report's numbers link to, on records of a small invented study."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mechdistill.audit.check import Evidence
from mechdistill.audit.finding import Finding, Verdict
from mechdistill.audit.page import audit_page, numbers_page
from mechdistill.audit.record import read_records
from mechdistill.audit.trace_page import trace_page
from mechdistill.audit.tree import read_tree

from .made_records import a_record, write_job

MEASURES = """\
method,metric,value,ci_low,ci_high,n_documents,n_seeds,baseline,gain,gain_low,gain_high
mech,focus,0.4821,0.4,0.5,20,2,,,,
vanilla,focus,0.3,0.2,0.4,20,2,,,,
mech,focus,,,,20,2,vanilla,0.1821,0.1,0.2
"""
CLAIMS = "id,statement,verdict,effect,ci_low,ci_high,n,sources\nC01,A & b,holds,0.5,0.1,0.9,7,x\n"


def made(root: Path, path: str, content: str) -> str:
    file = root / "results/tiny" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
    return f"results/tiny/{path}"


@pytest.fixture
def seen(tmp_path: Path) -> Evidence:
    notes = made(tmp_path, "notes.json", "[]")
    budget = made(tmp_path, "budget.json", "{}")
    student = made(tmp_path, "student.csv", "s")
    measures = made(tmp_path, "report/measures.csv", MEASURES)
    claims = made(tmp_path, "report/claims.csv", CLAIMS)
    figure = made(tmp_path, "report/figure1.png", "a picture")
    write_job(tmp_path, "make_notes", [], [notes], note="<b>")
    write_job(tmp_path, "train_student-mech-0", [notes], [student, budget])
    write_job(tmp_path, "make_tables", [student, budget], [measures])
    write_job(tmp_path, "judge_claims", [student], [claims])
    write_job(tmp_path, "draw_curves", [student], [figure])
    records, _ = read_records(tmp_path, "tiny")
    settings = SimpleNamespace(study="tiny", restricted=False)
    files = read_tree(tmp_path, "tiny")
    return Evidence(tmp_path, settings, files, tuple(records), (), (), (), ())  # type: ignore[arg-type]


def test_links_within_the_page_lead_somewhere_and_places_stand_once(seen: Evidence) -> None:
    page = trace_page(seen)
    places = re.findall(r'id="([^"]+)"', page)
    assert len(places) == len(set(places))
    assert {*re.findall(r'href="#([^"]+)"', page)} <= {*places}
    wanted = {"mech.focus", "vanilla.focus", "mech.vanilla.focus", "claims.C01", "figure1"}
    assert wanted <= {*places}


def test_numbers_stand_unrounded_with_the_jobs_of_their_method(seen: Evidence) -> None:
    page = trace_page(seen)
    row = page[page.index('id="mech.focus"') :].partition("</tr>")[0]
    for part in ("0.4821", "[0.4, 0.5]", "20 notes, 2 seeds"):
        assert part in row
    assert "0.1821" in page[page.index('id="mech.vanilla.focus"') :].partition("</tr>")[0]
    own = page[page.index("Of mech alone") :].partition("</tr>")[0]
    assert 'href="#job-train_student-mech-0"' in own
    assert "Of vanilla alone" not in page


def test_tree_has_hashes_but_of_files_that_hold_times(seen: Evidence) -> None:
    page = trace_page(seen)
    for path, file in seen.files.items():
        assert (file.sha256[:12] in page) == (not path.endswith("budget.json")), path
    assert "holds times" in page
    assert "2026-01-01" not in page
    assert "&lt;b&gt;" in page and "<b>&" not in page


def test_a_job_stands_in_full_once_and_is_linked_after_that(seen: Evidence) -> None:
    page = trace_page(seen)
    assert page.count('<li id="job-make_notes">') == 1
    assert page.count('by <a href="#job-train_student-mech-0">') == 3


def test_a_file_of_another_study_leads_to_its_page(seen: Evidence) -> None:
    path = "results/other/report/measures.csv"
    (seen.root / path).parent.mkdir(parents=True)
    (seen.root / path).write_text("x", encoding="utf-8")
    write_job(seen.root, "draw_curves", [path], ["results/tiny/report/figure1.png"])
    records, _ = read_records(seen.root, "tiny")
    page = trace_page(replace(seen, records=tuple(records)))
    assert 'of <a href="../../other/audit/trace.html">other</a>' in page


def test_pages_of_the_audit_tell_verdict_codes_and_machines() -> None:
    found = (Finding("ORPHAN", "results/tiny/<x>", "nobody made it", "delete it"),)
    member = Verdict("tiny", found, 2, 3, 4)
    page = audit_page(
        Verdict.of("both", [member, Verdict("both", (), 1, 1, 1)]),
        [a_record("a", cpu="EPYC"), a_record("b", cpu="EPYC"), a_record("c", slurm_job_id="1")],
    )
    for part in ("1 finding", "3 jobs, 4 files", "results/tiny/&lt;x&gt;", "../../tiny/audit"):
        assert part in page
    assert re.search(r"x86_64 \(EPYC\), Python 3.11</th><td class=\"number\">2<", page)
    assert "chosen by Slurm" in page
    assert "CANNOT-DERIVE" not in page
    assert "seconds" not in page


def test_page_of_clean_numbers() -> None:
    page = numbers_page(Verdict("tiny", (), 2, 3, 4), [])
    assert '<span class="clean">clean</span>' in page
    assert "<h2>Findings</h2>" not in page
    assert "CANNOT-DERIVE" in page and "ORPHAN" not in page
