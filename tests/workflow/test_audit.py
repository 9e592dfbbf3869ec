"""A red team on the finished smoke study: each trick is found and rightly named."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mechdistill.audit.check import audit
from mechdistill.audit.finding import Finding
from mechdistill.audit.numbers import DERIVING, wrong_numbers
from mechdistill.audit.record import read_records
from mechdistill.audit.replay import replayed
from mechdistill.audit.trace import trace_file
from mechdistill.digests import sha256_of

from .conftest import STUDY, Checkout

pytestmark = pytest.mark.workflow

RESULTS = Path("results", STUDY)
RUNS = Path("provenance/runs", STUDY)
LONG_AGO = 946_684_800.0  # 2000-01-01, seconds
ONE_OF_EACH_KIND = (
    *("data/data_card.md", "data/examples.parquet", "data/label_space.json"),
    *("teacher/model.safetensors", "distil/targets.safetensors", "heads/pools.json"),
    *("evaluate/mech-seed0/scores.parquet", "significance/comparisons.parquet"),
    *("report/table1.csv", "report/table1.tex", "report/table1.html", "report/figure5.pdf"),
    *("report/figure8.png", "report/figure1.csv", "report/claims.csv", "report/findings.txt"),
    *("report/report.html", "audit/trace.html"),
)


def found(checkout: Checkout) -> tuple[Finding, ...]:
    return tuple(audit(checkout.root, STUDY).findings)


def codes(findings: tuple[Finding, ...]) -> Counter[str]:
    return Counter(finding.code for finding in findings)


@contextmanager
def restored(checkout: Checkout, *paths: Path) -> Iterator[list[Path]]:
    """The files within the checkout, to be changed or deleted; put back afterwards."""
    files = [checkout.root / path for path in paths]
    before = [(file.read_bytes(), file.stat()) if file.exists() else None for file in files]
    try:
        yield files
    finally:
        for file, kept in zip(files, before, strict=True):
            if kept is None:
                file.unlink(missing_ok=True)
            else:
                file.write_bytes(kept[0])
                os.utime(file, ns=(kept[1].st_atime_ns, kept[1].st_mtime_ns))


def flip_a_bit(file: Path) -> None:
    """In the middle; size and times stay."""
    status = file.stat()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def rewrite(record: Path, **changes: Any) -> dict[str, Any]:
    content = json.loads(record.read_text(encoding="utf-8")) | changes
    record.write_text(json.dumps(content), encoding="utf-8")
    return dict(content)


def test_a_number_of_the_report_is_traced_to_notes_and_teacher(smoke: Checkout) -> None:
    table = str(RESULTS / "report/table1.csv")
    origin = trace_file(read_records(smoke.root, STUDY)[0], smoke.root, table)
    rules = [job.rule for job in origin.jobs()]
    assert {"make_tables", "compare_methods", "collect_scores", "score_model", "decode_model"} <= {
        *rules
    }
    assert {"train_student", "cache_targets", "train_teacher", "make_examples"} <= {*rules}
    jobs = [job.path for job in origin.jobs()]
    assert len(jobs) == len(set(jobs))
    assert {file.now for file in origin.files()} == {"as recorded"}


def test_the_untouched_study_is_clean(smoke: Checkout) -> None:
    verdict = audit(smoke.root, STUDY)
    assert verdict.clean, str(verdict)
    assert verdict.files == sum(path.is_file() for path in (smoke.root / RESULTS).rglob("*"))


def test_the_report_leads_to_the_pages_of_its_audit(smoke: Checkout) -> None:
    folder = smoke.root / RESULTS
    page = (folder / "report/report.html").read_text(encoding="utf-8")
    table = (folder / "report/table1.html").read_text(encoding="utf-8")
    traced = (folder / "audit/trace.html").read_text(encoding="utf-8")
    assert '<span class="clean">clean</span>' in (folder / "audit/audit.html").read_text("utf-8")
    linked = re.findall(r'href="\.\./audit/trace\.html#([^"]+)"', page + table)
    assert len(set(linked)) > 50
    assert {*linked} <= {*re.findall(r'id="([^"]+)"', traced)}
    assert {*re.findall(r'href="#([^"]+)"', traced)} <= {*re.findall(r'id="([^"]+)"', traced)}
    for part in ("train_teacher", sha256_of(folder / "teacher/model.safetensors")[:12]):
        assert part in traced
    assert len(traced) < 600_000


def test_the_rule_derives_the_numbers_once_more(shared_copy: Checkout) -> None:
    done = shared_copy.snakemake("--cores", "1", "audit")
    assert done.returncode == 0, done.stdout
    assert f"derive_numbers | numbers of {STUDY}: clean" in done.stdout
    page = shared_copy.root / RESULTS / "audit/numbers.html"
    assert '<span class="clean">clean</span>' in page.read_text(encoding="utf-8")
    assert found(shared_copy) == ()


def test_one_flipped_bit_in_each_kind_of_file_is_found(shared_copy: Checkout) -> None:
    paths = [RESULTS / name for name in ONE_OF_EACH_KIND]
    with restored(shared_copy, *paths) as files:
        for file in files:
            flip_a_bit(file)
        findings = found(shared_copy)
    assert {finding.where for finding in findings} == {str(path) for path in paths}
    assert set(codes(findings)) == {"TAMPERED"}


def test_missing_strange_and_half_written_files_are_told_apart(shared_copy: Checkout) -> None:
    gone, last = RESULTS / "data/twins.parquet", RESULTS / "report/findings.txt"
    strange, half = RESULTS / "heads/mine.csv", RESULTS / "heads/.pools.7.partial.json"
    with restored(shared_copy, gone, last, strange, half) as files:
        files[0].unlink()
        files[1].unlink()
        files[2].write_text("x")
        files[3].write_text("{")
        findings = found(shared_copy)
    assert {(finding.code, finding.where) for finding in findings} == {
        ("MISSING", str(gone)),
        ("MISSING", str(last)),
        ("ORPHAN", str(strange)),
        ("INCOMPLETE", str(half)),
    }


def test_swapped_predictions_of_two_students_are_named(shared_copy: Checkout) -> None:
    one, other = (RESULTS / f"evaluate/{m}-seed0/predictions.parquet" for m in ("mech", "vanilla"))
    with restored(shared_copy, one, other) as files:
        texts = [file.read_bytes() for file in files]
        for file, text in zip(files, reversed(texts), strict=True):
            file.write_bytes(text)
        findings = found(shared_copy)
    assert {(finding.code, finding.where) for finding in findings} == {
        ("SWAPPED", str(one)),
        ("SWAPPED", str(other)),
    }
    assert str(one) in next(f.what for f in findings if f.where == str(other))


def test_edited_cell_stays_found_after_dvc_took_it_over(copy_of_smoke: Checkout) -> None:
    root, table = copy_of_smoke.root, RESULTS / "report/table1.csv"
    text = (root / table).read_text(encoding="utf-8")
    (root / table).write_text(text.replace("0.", "0.9", 1), encoding="utf-8")
    stage = {"cmd": "true", "outs": [{str(table): {"persist": True}}]}
    (root / "dvc.yaml").write_text(json.dumps({"stages": {"make_tables": stage}}))
    done = copy_of_smoke.run("dvc", "commit", "--force")
    assert done.returncode == 0, done.stdout
    findings = found(copy_of_smoke)
    assert [(finding.code, finding.where) for finding in findings] == [("LAUNDERED", str(table))]


def test_parameter_changed_without_a_rerun_is_named(shared_copy: Checkout) -> None:
    with shared_copy.edited("params.yaml", "alpha: 0.05", "alpha: 0.01"):
        findings = found(shared_copy)
    assert set(codes(findings)) == {"STALE-PARAMETER"}
    assert {finding.where for finding in findings} == {
        f"{RUNS}/compare_methods.json: significance.alpha",
        f"{RUNS}/write_report.json: significance.alpha",
    }
    assert "0.05" in findings[0].what and "0.01" in findings[0].what


def test_two_swapped_parameters_are_both_named(shared_copy: Checkout) -> None:
    old, new = "base: {steps: 20, batch_size: 16", "base: {steps: 16, batch_size: 20"
    with shared_copy.edited(f"studies/{STUDY}.yaml", old, new):
        findings = found(shared_copy)
    assert set(codes(findings)) == {"STALE-PARAMETER"}
    named = {finding.where for finding in findings if "train_base_student-0" in finding.where}
    record = f"{RUNS}/train_base_student-0.json"
    assert named == {f"{record}: distil.base.batch_size", f"{record}: distil.base.steps"}


def test_edited_library_code_is_named_by_file(shared_copy: Checkout) -> None:
    file = "src/mechdistill/significance/holm.py"
    with restored(shared_copy, Path(file)) as (path,):
        path.write_text(path.read_text(encoding="utf-8") + "\n# a comment\n", encoding="utf-8")
        assert found(shared_copy) == ()
        path.write_text(path.read_text(encoding="utf-8") + "\nANOTHER = 1\n", encoding="utf-8")
        findings = found(shared_copy)
    assert set(codes(findings)) == {"STALE-CODE"}
    named = {finding.where for finding in findings}
    assert f"{RUNS}/compare_methods.json" in named
    assert f"{RUNS}/train_teacher.json" not in named
    assert all(file in finding.what for finding in findings)


def test_deleted_record_is_found_by_what_it_made(shared_copy: Checkout) -> None:
    with restored(shared_copy, RUNS / "rank_heads.json") as (record,):
        record.unlink()
        findings = found(shared_copy)
    assert {(finding.code, finding.where) for finding in findings} >= {
        ("NO-RECORD", f"{RESULTS}/heads/rankings.parquet"),
        ("NO-RECORD", f"{RESULTS}/heads/reliability.parquet"),
    }
    assert set(codes(findings)) <= {"NO-RECORD", "UNUSED"}


def test_record_made_to_fit_a_changed_file_breaks_the_chain(shared_copy: Checkout) -> None:
    record, file = RUNS / "make_pools.json", RESULTS / "heads/pools.json"
    with restored(shared_copy, record, file) as (record_file, changed):
        flip_a_bit(changed)
        outputs = json.loads(record_file.read_text())["outputs"]
        outputs[0]["sha256"] = sha256_of(changed)
        rewrite(record_file, outputs=outputs)
        findings = found(shared_copy)
    assert set(codes(findings)) == {"BROKEN-CHAIN"}
    assert all(finding.where.endswith(str(file)) for finding in findings)


def test_record_made_to_fit_changed_parameters_is_disputed(shared_copy: Checkout) -> None:
    record = RUNS / "compare_methods.json"
    with (
        restored(shared_copy, record, RUNS / "write_report.json") as files,
        shared_copy.edited("params.yaml", "alpha: 0.05", "alpha: 0.01"),
    ):
        for file in files:
            text = file.read_text(encoding="utf-8")
            file.write_text(
                text.replace('"significance.alpha": 0.05', '"significance.alpha": 0.01').replace(
                    '"alpha": 0.05', '"alpha": 0.01'
                ),
                encoding="utf-8",
            )
        findings = found(shared_copy)
    assert codes(findings) == {"DISPUTED": 2}
    assert "significance.alpha" in findings[0].what


def test_records_of_another_study_or_job_are_found(shared_copy: Checkout) -> None:
    one, other = RUNS / "train_student-mech-0.json", RUNS / "train_student-mech-1.json"
    tables = RUNS / "make_tables.json"
    with restored(shared_copy, one, tables) as (copied, foreign):
        shutil.copyfile(shared_copy.root / other, copied)
        text = foreign.read_text(encoding="utf-8")
        foreign.write_text(text.replace(STUDY, "embedded"), encoding="utf-8")
        findings = found(shared_copy)
    named = {(finding.code, finding.where) for finding in findings}
    assert {("FOREIGN", str(one)), ("FORGED", str(other)), ("FOREIGN", str(tables))} <= named
    assert ("NO-RECORD", f"{RESULTS}/report/table1.csv") in named


def test_times_of_files_tell_nothing_and_hide_nothing(copy_of_smoke: Checkout) -> None:
    for path in (copy_of_smoke.root / RESULTS).rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    flip_a_bit(copy_of_smoke.root / RESULTS / "report/table1.html")
    record = copy_of_smoke.root / RUNS / "make_pools.json"
    rewrite(record, ended="2000-01-01T00:00:00+00:00")
    findings = found(copy_of_smoke)
    assert [(finding.code, Path(finding.where).name) for finding in findings] == [
        ("TAMPERED", "table1.html"),
        ("CLOCK", "make_pools.json"),
    ]


def test_jobs_of_another_machine_or_environment_are_named(shared_copy: Checkout) -> None:
    one, other = RUNS / "make_pools.json", RUNS / "make_tables.json"
    with restored(shared_copy, one, other) as files:
        machine = json.loads(files[0].read_text())["environment"]
        rewrite(files[0], environment=machine | {"cpu": "another model"})
        packages = machine["packages"] | {"scipy": "1.0.0"}
        rewrite(files[1], environment=machine | {"packages": packages})
        findings = found(shared_copy)
    assert {(finding.code, finding.where) for finding in findings} == {
        ("MIXED-MACHINES", str(one)),
        ("ENVIRONMENT", str(other)),
    }
    assert "scipy 1.0.0" in next(f.what for f in findings if f.code == "ENVIRONMENT")


def test_a_node_of_slurm_may_be_of_another_model_and_must_give_the_same(
    shared_copy: Checkout,
) -> None:
    record, pools = RUNS / "make_pools.json", RESULTS / "heads/pools.json"
    with restored(shared_copy, record, pools) as (file, made):
        machine = json.loads(file.read_text())["environment"] | {"cpu": "another model"}
        rewrite(file, environment=machine, slurm_job_id="7")
        assert found(shared_copy) == ()
        flip_a_bit(made)
        rewrite(file, environment=machine | {"packages": {"scipy": "1.0.0"}})
        findings = found(shared_copy)
    assert codes(findings) == {"TAMPERED": 1, "ENVIRONMENT": 1}


def test_rule_run_by_hand_is_found(shared_copy: Checkout) -> None:
    """Through the wrapper, so that a record fits, but for other students than the rule takes."""
    record = RUNS / "make_budget.json"
    outputs = [RESULTS / "report/budget.csv", RESULTS / "report/times.csv"]
    with restored(shared_copy, record, *outputs) as (file, *_):
        content = json.loads(file.read_text(encoding="utf-8"))
        budgets = [read["path"] for read in content["inputs"]][:-1]
        named = ["--table", str(outputs[0]), "--times", str(outputs[1])]
        done = shared_copy.run(
            "mechdistill.provenance.run", "--params", "{}",
            "--code", content["code"]["fingerprint"], "--inputs", *budgets,
            "--outputs", *map(str, outputs), "--log", f"logs/{STUDY}/make_budget.log",
            "--", "workflow/scripts/make_budget.py", "--budgets", *budgets, *named,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        findings = found(shared_copy)
    assert codes(findings)["DISPUTED"] == 1
    assert "inputs" in findings[0].what or "command" in findings[0].what


def test_command_exits_with_what_it_found(shared_copy: Checkout) -> None:
    with restored(shared_copy, RESULTS / "heads/mine.csv") as (file,):
        file.write_text("x")
        done = shared_copy.run("mechdistill.audit", STUDY, "--json", "--bytes-only")
    assert done.returncode == 1, done.stdout
    said = json.loads(done.stdout)
    assert not said["clean"]
    assert [finding["code"] for finding in said["findings"]] == ["ORPHAN"]


def test_edited_cell_is_found_though_record_and_lock_fit(shared_copy: Checkout) -> None:
    table, record = RESULTS / "report/table1.csv", RUNS / "make_tables.json"
    with restored(shared_copy, table, record) as (file, record_file):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        cells = lines[1].split(",")
        cells[3] = "0.99"  # the value of the first method and metric
        file.write_text("".join([lines[0], ",".join(cells), *lines[2:]]), encoding="utf-8")
        outputs = json.loads(record_file.read_text(encoding="utf-8"))["outputs"]
        for output in outputs:
            output["sha256"] = sha256_of(shared_copy.root / output["path"])
        rewrite(record_file, outputs=outputs)
        broken = found(shared_copy)  # by bytes only the audit after the report knows another table
        assert set(codes(broken)) == {"BROKEN-CHAIN"}
        assert f"{RUNS}/audit_results.json: {table}" in {finding.where for finding in broken}
        records, _ = read_records(shared_copy.root, STUDY)
        behind = [r for r in records if r.rule in ("collect_scores", "compare_methods")]
        tables = [r for r in records if r.rule == "make_tables"]
        findings = list(wrong_numbers([*behind, *tables], shared_copy.root))
    (finding,) = findings
    assert (finding.code, finding.where.partition(":")[0]) == ("CELL", str(table))
    assert cells[0] in finding.where and cells[1] in finding.where
    assert "0.99" in finding.what


def test_rules_of_the_report_are_all_derived_again(smoke: Checkout) -> None:
    records, _ = read_records(smoke.root, STUDY)
    shown = {r.rule for r in records if any("/report/" in out.path for out in r.outputs)}
    assert shown <= set(DERIVING)


def test_a_replayed_job_writes_the_same_bytes_and_a_changed_file_is_found(smoke: Checkout) -> None:
    jobs = [job for job in read_records(smoke.root, STUDY)[0] if job.rule == "make_pools"]
    (pools,) = (file.path for file in jobs[0].outputs)
    assert not list(replayed(jobs, smoke.root, 1))
    with restored(smoke, Path(pools)) as (file,):
        flip_a_bit(file)
        assert [(f.code, f.where) for f in replayed(jobs, smoke.root, 1)] == [("REPLAY", pools)]
