"""Results go through DVC to another clone, and Snakemake finds nothing to do there."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

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


def test_dvc_repro_runs_what_snakemake_would_run(stored: Checkout, tmp_path: Path) -> None:
    checkout = copied(stored, tmp_path / "mechdistill")
    before = digests(checkout)
    with checkout.edited("params.yaml", "alpha: 0.05", "alpha: 0.01"):
        dvc(checkout, "repro")
        assert checkout.planned() == set()
        assert "up to date" in dvc(checkout, "status")
    after = digests(checkout)
    changed = {path for path in after if after[path] != before[path]}
    assert f"results/{STUDY}/significance/comparisons.parquet" in changed
    unchanged = f"results/{STUDY}/data/examples.parquet"
    assert unchanged not in changed


def test_dvc_yaml_is_that_of_the_workflow(fresh_clone: Checkout) -> None:
    done = fresh_clone.run("mechdistill.dvc_stages", "--check")
    assert done.returncode == 0, done.stdout
