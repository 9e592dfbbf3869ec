"""Bad input stops the workflow before any job, with one message that names the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Checkout, clone

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return clone(tmp_path_factory.mktemp("bad") / "mechdistill")


def write(checkout: Checkout, path: str, text: str) -> None:
    (checkout.root / path).write_text(text, encoding="utf-8")


OVERLAYS = {
    "malformed YAML": ("study: odd\nseed: [1,\n", ["studies/odd.yaml", "line"]),
    "unknown key": ("study: odd\ndistil: {lambda_p3: 1.0}\n", ["distil.lambda_p3"]),
    "wrong type": ("study: odd\nseed: many\n", ["seed", "many"]),
    "impossible value": ("study: odd\ndistil: {lambda_p2: -1}\n", ["distil.lambda_p2", "-1"]),
}


@pytest.mark.parametrize("name", OVERLAYS)
def test_bad_study_file_is_named_by_snakemake_and_by_the_driver(
    checkout: Checkout, name: str
) -> None:
    text, expected = OVERLAYS[name]
    write(checkout, "studies/odd.yaml", text)
    for done in (
        checkout.snakemake("-n", study="odd"),
        checkout.run("mechdistill.reproduce", "--study", "odd"),
    ):
        assert done.returncode == 1
        for words in [*expected, "What to do:"]:
            assert words in done.stdout, done.stdout
        assert "Traceback" not in done.stdout
    assert not (checkout.root / "results" / "odd").exists()


def test_unknown_study_is_answered_with_the_known_ones(checkout: Checkout) -> None:
    for done in (
        checkout.snakemake("-n", study="nonsense"),
        checkout.run("mechdistill.reproduce", "--study", "nonsense"),
    ):
        assert done.returncode == 1
        assert "there is no study 'nonsense'" in done.stdout
        assert "smoke" in done.stdout
        assert "Traceback" not in done.stdout


def test_results_without_their_notes_are_refused(checkout: Checkout) -> None:
    folder = checkout.root / "results" / "smoke" / "teacher"
    folder.mkdir(parents=True)
    stranger = folder / "model.safetensors"
    stranger.write_bytes(b"from another checkout")
    done = checkout.snakemake("-n")
    assert done.returncode == 1
    assert "results/smoke/teacher/model.safetensors has no record here" in done.stdout
    assert "What to do: bring its notes back" in done.stdout
    stranger.unlink()


def test_broken_source_is_named(checkout: Checkout) -> None:
    path = Path("src/mechdistill/progress.py")
    with checkout.edited(str(path), "LOG_EVERY = ", "LOG EVERY = "):
        done = checkout.snakemake("-n")
    assert done.returncode == 1
    assert f"{path}" in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("class Mech", "class (Mech", "methods/mech.py, line"),
        ('name = "mech"', 'name = "mesh"', "methods/mech.py declares no method 'mech'"),
        ('_kl", "distil.lambda_p1"', '_kl", "distil.lamda_p1"', "'distil.lamda_p1'"),
    ],
)
def test_broken_method_is_named(checkout: Checkout, old: str, new: str, expected: str) -> None:
    with checkout.edited("src/mechdistill/distil/methods/mech.py", old, new):
        done = checkout.snakemake("-n")
    assert done.returncode == 1
    for words in (expected, "methods/mech.py", "What to do:"):
        assert words in done.stdout, done.stdout
    assert "Traceback" not in done.stdout


def test_clone_under_a_name_with_an_apostrophe_runs(tmp_path: Path) -> None:
    done = clone(tmp_path / "it's mine").snakemake(
        "--cores", "1", "results/smoke/data/label_space.json"
    )
    assert done.returncode == 0, done.stdout
