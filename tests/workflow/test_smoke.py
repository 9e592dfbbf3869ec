"""The smoke study end to end: everything is made, recorded, and says how it goes."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import pytest

from mechdistill import artifacts

from .conftest import STUDY, Checkout

pytestmark = pytest.mark.workflow

RESULTS = Path("results", STUDY)
LIMIT = 180.0
"""Seconds that the study may take on two cores."""


def records(checkout: Checkout) -> list[dict]:
    return [
        artifacts.read_json(path)
        for path in sorted((checkout.root / "provenance" / "runs" / STUDY).glob("*.json"))
    ]


def made(checkout: Checkout) -> dict[str, str]:
    """SHA-256 of every output, as its job recorded it."""
    outputs = [output for record in records(checkout) for output in record["outputs"]]
    return {output["path"]: output["sha256"] for output in outputs}


def test_report_is_there_and_the_run_ends_with_the_findings(smoke: Checkout) -> None:
    report = smoke.root / RESULTS / "report"
    for name in ("report.html", "claims.csv", "table1.csv", "table1.tex", "table1.html"):
        assert (report / name).stat().st_size > 100, name
    for figure in (1, 4, 5, 7, 8, 10, 11, 12, 13, 14):
        assert (report / f"figure{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert (report / f"figure{figure}.pdf").read_bytes().startswith(b"%PDF")
        assert (report / f"figure{figure}.csv").read_text(encoding="utf-8").count("\n") > 1
    ending = smoke.output[-4000:]
    assert (report / "findings.txt").read_text(encoding="utf-8").strip() in ending
    assert f"The report: {report / 'report.html'}" in ending


def test_run_tells_the_job_of_how_many_rate_and_time_left(smoke: Checkout) -> None:
    jobs = len(records(smoke))
    numbers = re.findall(rf"^\[(\d+)/{jobs}\] \w+.* \| started$", smoke.output, re.MULTILINE)
    assert [int(number) for number in numbers] == list(range(1, jobs + 1))
    assert re.search(r"train_teacher \| .* \d+/\d+ \(\d+%\), .*/s, \d+ s left", smoke.output)
    assert re.search(rf"\({jobs} of {jobs} jobs, .* so far", smoke.output)


def test_every_file_has_a_record_that_holds_its_hash(smoke: Checkout) -> None:
    recorded = made(smoke)
    files = {
        str(path.relative_to(smoke.root))
        for path in (smoke.root / RESULTS).rglob("*")
        if path.is_file()
    }
    assert files == set(recorded)
    for path, digest in recorded.items():
        content = (smoke.root / path).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest, path


def test_every_input_is_what_its_maker_left(smoke: Checkout) -> None:
    known = made(smoke)
    for record in records(smoke):
        for given in record["inputs"]:
            assert given["sha256"] == known[given["path"]], (record["job"], given["path"])


def test_every_parameter_that_a_rule_declares_is_read(smoke: Checkout) -> None:
    unread = {r["job"]: r["unread_parameters"] for r in records(smoke) if r["unread_parameters"]}
    assert unread == {}


def test_every_module_that_ran_is_in_the_fingerprint(smoke: Checkout) -> None:
    missed = {
        record["job"]: record["code"]["not_in_fingerprint"]
        for record in records(smoke)
        if record["code"]["not_in_fingerprint"]
    }
    assert missed == {}


def test_no_half_written_file_is_left(smoke: Checkout) -> None:
    assert list((smoke.root / RESULTS).rglob(".*")) == []


@pytest.mark.parametrize(
    "names",
    [
        ("heads/head_scores.parquet", "patching/single_heads.parquet"),
        ("teacher/events.parquet", "patching/ablation.parquet", "patching/head_effects.parquet"),
        ("patching/head_sets.parquet", "report/figure10.png", "report/figure11.pdf"),
        ("patching/knock_in.parquet", "patching/knock_in_pairs.parquet", "report/figure12.png"),
        ("patching/event_attention.parquet", "report/figure13.png"),
        tuple(f"patching/elicitation_{name}.parquet" for name in ("probe", "ablation", "sets")),
        ("evaluate/mech-seed1/predictions.parquet", "distil/targets.safetensors"),
        ("evaluate/scores.parquet", "significance/comparisons.parquet", "report/table1.csv"),
        ("report/figure5.pdf", "report/figure1.png", "report/claims.csv", "report/report.html"),
        ("report/figure7.csv", "report/figure14.pdf", "audit/audit.html", "audit/trace.html"),
    ],
)
def test_jobs_done_again_give_the_same_bytes(
    copy_of_smoke: Checkout, names: tuple[str, ...]
) -> None:
    files = {name: copy_of_smoke.root / RESULTS / name for name in names}
    before = {name: path.read_bytes() for name, path in files.items()}
    for path in files.values():
        path.unlink()
    done = copy_of_smoke.snakemake("--cores", "2", *(str(RESULTS / name) for name in names))
    assert done.returncode == 0, done.stdout
    assert {name: path.read_bytes() for name, path in files.items()} == before


def test_deleted_files_are_made_again_and_nothing_else(copy_of_smoke: Checkout) -> None:
    files = [
        copy_of_smoke.root / RESULTS / name
        for name in ("heads/rankings.parquet", "data/data_card.md")
    ]
    before = {path: path.read_bytes() for path in files}
    for path in files:
        path.unlink()
    done = copy_of_smoke.run("mechdistill.reproduce", "--study", STUDY, "--cores", "1")
    assert done.returncode == 0, done.stdout
    assert {path: path.read_bytes() for path in files} == before
    started = re.findall(r"^\[\d/2\] (\w+) \| started$", done.stdout, re.MULTILINE)
    assert sorted(started) == ["rank_heads", "write_data_card"], done.stdout
    assert copy_of_smoke.planned() == set()


def test_smoke_takes_less_than_three_minutes(smoke: Checkout) -> None:
    shares = [(r["cpu_seconds"], r["wall_seconds"]) for r in records(smoke)]
    share = sum(cpu for cpu, _ in shares) / sum(wall for _, wall in shares)
    if (os.cpu_count() or 1) < 2 or share < 0.85:
        pytest.skip(f"no two cores to itself: jobs computed during {share:.0%} of their time")
    assert smoke.seconds < LIMIT
