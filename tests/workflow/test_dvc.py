"""Results go through DVC to another clone, and Snakemake finds nothing to do there."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import STUDY, Checkout, copied, environment

pytestmark = pytest.mark.workflow


def dvc(checkout: Checkout, *arguments: str) -> str:
    done = checkout.run("dvc", *arguments)
    assert done.returncode == 0, done.stdout
    return done.stdout


def git(checkout: Checkout, *arguments: str) -> None:
    named = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    command = ["git", *named, *arguments]
    subprocess.run(command, cwd=checkout.root, env=environment(), check=True)


def digests(checkout: Checkout) -> dict[str, str]:
    files = (path for path in (checkout.root / "results").rglob("*") if path.is_file())
    return {
        str(path.relative_to(checkout.root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


@pytest.fixture(scope="module")
def stored(smoke: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The smoke study, committed and pushed to a remote of its own."""
    folder = tmp_path_factory.mktemp("stored")
    checkout = copied(smoke, folder / "mechdistill")
    done = checkout.run("mechdistill.dvc_stages", "--study", STUDY)
    assert done.returncode == 0, done.stdout
    (checkout.root / "dvc.lock").unlink(missing_ok=True)  # that of the study in the repository
    dvc(checkout, "remote", "add", "--force", "--default", "test", str(folder / "remote"))
    dvc(checkout, "commit", "--force")
    dvc(checkout, "push")
    git(checkout, "add", "dvc.yaml", "dvc.lock", ".dvc")
    git(checkout, "add", "--force", "provenance")  # git ignores that of the smoke study
    git(checkout, "commit", "--quiet", "--message", "Keep the smoke study")
    return checkout


@pytest.fixture(scope="module")
def fetched(stored: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A fresh clone of it, with the results pulled."""
    target = tmp_path_factory.mktemp("fetched") / "mechdistill"
    subprocess.run(["git", "clone", "--quiet", str(stored.root), str(target)], check=True)
    checkout = Checkout(target)
    assert not (target / "results" / STUDY).exists()
    dvc(checkout, "pull")
    return checkout


def test_pulled_results_are_those_that_were_pushed(stored: Checkout, fetched: Checkout) -> None:
    assert digests(fetched) == digests(stored)


def test_snakemake_has_nothing_to_do_after_a_pull(fetched: Checkout) -> None:
    done = fetched.snakemake("-n")
    assert "Nothing to be done" in done.stdout, done.stdout


def test_dvc_finds_everything_up_to_date_after_a_pull(fetched: Checkout) -> None:
    assert "up to date" in dvc(fetched, "status")


def test_every_result_of_the_study_is_an_output_of_a_stage(stored: Checkout) -> None:
    listed = dvc(stored, "ls", ".", "--dvc-only", "--recursive").split()
    assert set(listed) == set(digests(stored))


def test_a_changed_parameter_is_seen_by_both_after_a_pull(fetched: Checkout) -> None:
    with fetched.edited("params.yaml", "alpha: 0.05", "alpha: 0.01"):
        assert "compare_methods" in fetched.planned()
        assert "make_examples" not in fetched.planned()
        said = dvc(fetched, "status")
    assert "compare_methods" in said
    assert "make_examples" not in said


def test_a_changed_file_is_seen_by_both_after_a_pull(fetched: Checkout) -> None:
    path = fetched.root / "results" / STUDY / "data" / "label_space.json"
    before = path.read_bytes()
    path.write_bytes(before + b"\n")
    try:
        assert "make_examples" in fetched.planned()
        assert "make_examples" in dvc(fetched, "status")
    finally:
        path.write_bytes(before)


def test_an_experiment_reruns_what_depends_on_it_and_is_compared(
    stored: Checkout, tmp_path: Path
) -> None:
    checkout = copied(stored, tmp_path / "mechdistill")
    before = digests(checkout)
    dvc(checkout, "exp", "run", "--name", "other-draws", "--set-param", "significance.seed=1")
    assert checkout.planned() == set()
    assert "up to date" in dvc(checkout, "status")
    after = digests(checkout)
    folder = f"results/{STUDY}"
    changed = {path for path in after if after[path] != before[path]}
    assert {
        f"{folder}/significance/comparisons.parquet",
        f"{folder}/report/metrics.json",
    } <= changed
    untouched = tuple(f"{folder}/{stage}" for stage in ("data", "teacher", "distil", "evaluate"))
    assert not [path for path in changed if path.startswith(untouched)]

    parameters = json.loads(dvc(checkout, "params", "diff", "--json"))
    (seed,) = parameters["params.yaml"].values()
    assert (seed["old"], seed["new"]) == (0, 1)
    metrics = json.loads(dvc(checkout, "metrics", "diff", "--json"))
    interval = metrics[f"{folder}/report/metrics.json"]
    assert any(key.endswith(".ci_low") for key in interval)
    assert not any(key.endswith(".value") for key in interval)  # other draws, the same scores
    dvc(checkout, "plots", "diff", "HEAD", "--out", "plots")
    page = (checkout.root / "plots" / "index.html").read_text(encoding="utf-8")
    assert f"results_{STUDY}_report_figure1.png" in page
    assert "other-draws" in dvc(checkout, "exp", "list")


ALPHA = ("params.yaml", "alpha: 0.05", "alpha: 0.01")


@pytest.mark.long
def test_a_run_that_is_cut_between_both_is_mended_by_either(
    stored: Checkout, tmp_path: Path
) -> None:
    one, other = (copied(stored, tmp_path / name) for name in ("one", "other"))
    with one.edited(*ALPHA), other.edited(*ALPHA):
        done = one.snakemake("--cores", "1", "--until", "compare_methods")
        assert done.returncode == 0, done.stdout
        dvc(one, "repro")
        dvc(other, "repro", "--single-item", "compare_methods")
        done = other.snakemake("--cores", "1")
        assert done.returncode == 0, done.stdout
        dvc(other, "commit", "--force")
        for checkout in (one, other):
            assert "up to date" in dvc(checkout, "status")
            assert "Nothing to be done" in checkout.snakemake("-n").stdout
        assert digests(one) == digests(other) != digests(stored)
        locks = [yaml.safe_load((c.root / "dvc.lock").read_text()) for c in (one, other)]
        assert outs(locks[0]) == outs(locks[1])


def outs(lock: dict[str, Any]) -> dict[str, str]:
    """MD5 of every output that dvc.lock names."""
    stages = lock["stages"].values()
    return {out["path"]: out["md5"] for stage in stages for out in stage["outs"]}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["hardlink", "symlink"])
def test_jobs_write_new_files_and_never_through_links_into_the_cache(
    stored: Checkout, tmp_path: Path, kind: str
) -> None:
    checkout = copied(stored, tmp_path / "mechdistill")
    dvc(checkout, "config", "--local", "cache.type", kind)
    dvc(checkout, "checkout", "--relink")
    page = checkout.root / "results" / STUDY / "report" / "report.html"
    assert page.is_symlink() if kind == "symlink" else page.stat().st_nlink > 1
    with checkout.edited("params.yaml", "least_std: 1.0", "least_std: 1.5"):  # told on the page
        done = checkout.snakemake("--cores", "1")
    assert done.returncode == 0, done.stdout
    assert re.findall(r"^(\w+)[^|]* \| done in", done.stdout, re.MULTILINE) == [
        *("write_report", "audit_results")
    ]
    assert not page.is_symlink() and page.stat().st_nlink == 1
    kept = [path for path in (checkout.root / ".dvc/cache/files/md5").rglob("*") if path.is_file()]
    assert len(kept) > 50
    for path in kept:
        digest = hashlib.md5(path.read_bytes()).hexdigest()
        assert digest == f"{path.parent.name}{path.name.removesuffix('.dir')}", path


def test_dvc_yaml_is_that_of_the_workflow(fresh_clone: Checkout) -> None:
    done = fresh_clone.run("mechdistill.dvc_stages", "--check")
    assert done.returncode == 0, done.stdout
