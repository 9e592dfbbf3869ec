"""A joined study of two members, from a finished one and one to be made, to the joined report.

The second member is `smoke` with wider students. What the two share is copied from the finished
one with Snakemake's notes on it, so that only students are trained and scored here.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
from pathlib import Path

import pandas as pd
import pytest

from mechdistill import artifacts
from mechdistill.audit.check import audit, look
from mechdistill.audit.numbers import wrong_numbers
from mechdistill.report.verdicts import Verdict
from mechdistill.significance.students import GAIN, LARGER

from .conftest import STUDY, Checkout, copied

pytestmark = pytest.mark.workflow

PAIR, WIDE = "pair", "smoke-wide"
OVERLAYS = {
    PAIR: f"study: {PAIR}\nmembers: [{STUDY}, {WIDE}]\n",
    WIDE: (
        f"extends: [{STUDY}]\n"
        "distil:\n"
        "  seeds: [0]\n"
        "  student: {hidden_size: 40, layers: 2, heads: 4, kv_heads: 2, head_dim: 10,"
        " intermediate_size: 80}\n"
        "evaluate: {simulator: null}\n"
    ),
}
REPORT = Path("results", PAIR, "report")


def note(root: Path, path: str) -> Path:
    """Where Snakemake keeps its note on a file of a short name."""
    name = base64.urlsafe_b64encode(path.encode()).decode()
    return root / "provenance" / "metadata" / name


def give_what_is_shared(root: Path, source: str, target: str) -> None:
    """Copy results with their notes; what depends on other parameters is then made anew."""
    for path in sorted((root / "results" / source).rglob("*")):
        if path.is_file():
            old = path.relative_to(root).as_posix()
            new = old.replace(source, target, 1)
            (root / new).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, root / new)
            text = note(root, old).read_text(encoding="utf-8")
            copy = note(root, new)
            copy.write_text(text.replace(f"/{source}/", f"/{target}/"), encoding="utf-8")
            shutil.copystat(note(root, old), copy)


@pytest.fixture(scope="module")
def start(smoke: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """One member finished, the other to be made. Not to be changed."""
    checkout = copied(smoke, tmp_path_factory.mktemp("pair") / "mechdistill")
    for name, text in OVERLAYS.items():
        (checkout.root / "studies" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return checkout


@pytest.fixture(scope="module")
def pair(start: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The joined study, made by the driver."""
    checkout = copied(start, tmp_path_factory.mktemp("joined") / "mechdistill")
    give_what_is_shared(checkout.root, STUDY, WIDE)
    done = checkout.run("mechdistill.reproduce", "--study", PAIR, "--cores", "2")
    assert done.returncode == 0, done.stdout
    return Checkout(checkout.root, done.stdout)


def frame(checkout: Checkout, name: str) -> pd.DataFrame:
    return pd.read_csv(checkout.root / REPORT / name, keep_default_na=False, na_values={})


def test_an_unfinished_member_is_named_with_the_command_that_makes_it(start: Checkout) -> None:
    done = start.snakemake("-n", study=PAIR)
    assert done.returncode != 0
    assert f"{WIDE}, member 2 of 2 of {PAIR}, is not finished: results/{WIDE}/" in done.stdout
    assert f"make it: python -m mechdistill.reproduce --study {WIDE}" in done.stdout


def test_the_driver_runs_the_members_in_turn_and_then_the_report(pair: Checkout) -> None:
    lines = pair.output.splitlines()
    first = lines.index(f"Study {STUDY} (member 1 of 2) on 2 cores: looking what there is to do")
    second = lines.index(f"Study {WIDE} (member 2 of 2) on 2 cores: looking what there is to do")
    third = lines.index(f"Study {PAIR} on 2 cores: looking what there is to do")
    assert first < second < third
    assert "Everything is up to date." in lines[first:second]
    made = [line for line in lines[second:third] if line.startswith("[member 2 of 2, 1/")]
    assert len(made) == 1
    assert "train_teacher | started" not in pair.output
    assert "train_student mech-0 | started" in "\n".join(lines[second:third])
    findings = (pair.root / REPORT / "findings.txt").read_text(encoding="utf-8")
    assert findings.strip() in pair.output
    assert f"The report: {pair.root / REPORT / 'report.html'}" in lines[-1]


def test_tables_hold_both_students_in_the_papers_order(pair: Checkout) -> None:
    first = frame(pair, "table1.csv")
    values = first[first["value"] != ""]
    assert list(dict.fromkeys(values["student"])) == ["llama 2 x 32", "llama 2 x 40"]
    gains = first[first["student"] == "all students"]
    assert set(gains["method"]) == {"mech"}
    assert set(gains["baseline"]) == {"vanilla"}
    assert len(frame(pair, "table2.csv")) == 0  # one data set
    html = (pair.root / REPORT / "table1.html").read_text(encoding="utf-8")
    order = ["icd, llama 2 x 32", "icd, llama 2 x 40", "average gain over Vanilla", "Teacher"]
    places = [html.index(text) for text in order]
    assert places == sorted(places)


def test_students_are_compared_on_the_seeds_that_both_have(pair: Checkout) -> None:
    found = artifacts.read_table(pair.root / f"results/{PAIR}/significance/comparisons.parquet")
    assert set(found["question"]) == {GAIN, LARGER}
    assert set(found["n_seeds"]) == {1}
    larger = found[found["question"] == LARGER]
    assert set(larger["students"]) == {"llama 2 x 40; llama 2 x 32"}
    assert set(larger["method"]) == {"vanilla", "mech"}


def test_claims_of_all_members_and_of_all_together(pair: Checkout) -> None:
    claims = frame(pair, "claims.csv")
    assert set(claims["member"]) == {STUDY, WIDE, PAIR}
    together = claims[claims["member"] == PAIR].set_index("id")["verdict"]
    assert together["C29"] == Verdict.NOT_TESTED
    assert together["C31"] != Verdict.NOT_TESTED
    assert (claims["member"] == STUDY).sum() == (claims["member"] == WIDE).sum() > 46


def test_budgets_and_times_of_all_runs_are_there(pair: Checkout) -> None:
    budgets, times = frame(pair, "budget.csv"), frame(pair, "times.csv")
    assert len(budgets) == 2 * 2 + 2 * 1
    vanilla = times[times["method"] == "vanilla"]
    assert list(map(float, vanilla["ratio"])) == [1.0, 1.0]
    assert set(times["member"]) == {STUDY, WIDE}
    assert "out_of_line" in budgets


def test_the_page_holds_everything_and_fetches_nothing(pair: Checkout) -> None:
    page = (pair.root / REPORT / "report.html").read_text(encoding="utf-8")
    for text in (f'href="../../{WIDE}/report/report.html"', "MIMIC-IV-full, LLaMA3-13B"):
        assert text in page
    assert "http://" not in page
    assert "src=" not in page


def test_joined_rules_leave_records_and_read_all_that_they_declare(pair: Checkout) -> None:
    folder = pair.root / "provenance" / "runs" / PAIR
    records = [artifacts.read_json(path) for path in sorted(folder.glob("*.json"))]
    assert len(records) == 6
    recorded = {out["path"]: out["sha256"] for r in records for out in r["outputs"]}
    made = [path for path in (pair.root / "results" / PAIR).rglob("*") if path.is_file()]
    digests = {
        path.relative_to(pair.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in made
    }
    assert digests == recorded
    for record in records:
        assert record["unread_parameters"] == [], record["job"]
        assert record["code"]["not_in_fingerprint"] == [], record["job"]


def test_the_audit_of_a_joined_study_is_that_of_its_members_too(pair: Checkout) -> None:
    """The second member has no records of what was copied for this test; all else is whole."""
    verdict = audit(pair.root, PAIR)
    assert [part.study for part in verdict.members] == [STUDY, WIDE]
    assert [f for f in verdict.findings if WIDE not in f.where] == []
    path = f"results/{STUDY}/report/measures.csv"
    before = (pair.root / path).read_bytes()
    (pair.root / path).write_bytes(before + b"\n")
    try:
        findings = audit(pair.root, PAIR).findings
    finally:
        (pair.root / path).write_bytes(before)
    assert [(f.code, f.where) for f in findings if WIDE not in f.where] == [("TAMPERED", path)]


def test_a_joined_number_is_derived_once_more_and_leads_to_its_member(pair: Checkout) -> None:
    assert list(wrong_numbers(look(pair.root, PAIR).records, pair.root)) == []
    page = (pair.root / REPORT / "report.html").read_text(encoding="utf-8")
    traced = (pair.root / REPORT.parent / "audit/trace.html").read_text(encoding="utf-8")
    place = f"{STUDY}.mech.focus"
    assert f'href="../audit/trace.html#{place}"' in page
    assert f'<tr id="{place}">' in traced
    assert f'href="../../{STUDY}/audit/trace.html#mech.focus"' in traced.replace("\n ", " ")
    there = (pair.root / f"results/{STUDY}/audit/trace.html").read_text(encoding="utf-8")
    assert '<tr id="mech.focus">' in there


def test_a_changed_member_is_joined_anew(pair: Checkout) -> None:
    assert "Nothing to be done" in pair.snakemake("-n", study=PAIR).stdout
    path = pair.root / "results" / WIDE / "report" / "times.csv"
    before = path.read_bytes()
    path.write_bytes(before + b"\n")
    try:
        planned = pair.snakemake("-n", study=PAIR).stdout
    finally:
        path.write_bytes(before)
    assert "join_budgets" in planned
    assert "compare_students" not in planned
