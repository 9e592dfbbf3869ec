"""The smoke study with students of another family and tokenizer, as it is planned."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .conftest import Checkout, clone

pytestmark = pytest.mark.workflow

SMOKE = "studies/smoke.yaml"
STUDENT = "  student: {hidden_size"
OTHER = "  student_tokenizer: {model: bpe, vocabulary: 800}\n  student: {family: qwen3, hidden_size"
METHODS = "methods: [vanilla, mech]"
ONLY_OTHER = {"train_student_tokenizer", "retokenise_traces"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return clone(tmp_path_factory.mktemp("other") / "mechdistill")


@pytest.fixture
def crossed(checkout: Checkout) -> Iterator[Checkout]:
    with checkout.edited(SMOKE, STUDENT, OTHER):
        yield checkout


@pytest.fixture(scope="module")
def commands(checkout: Checkout) -> list[str]:
    with checkout.edited(SMOKE, STUDENT, OTHER):
        return checkout.snakemake("-n", "-p").stdout.splitlines()


def test_another_tokenizer_is_two_jobs_more(crossed: Checkout) -> None:
    with_other = crossed.planned()
    text = (crossed.root / SMOKE).read_text(encoding="utf-8")
    with crossed.edited(SMOKE, text, text.replace(OTHER, STUDENT)):
        plain = crossed.planned()
    assert with_other == plain | ONLY_OTHER
    assert not plain & ONLY_OTHER


TEACHERS, STUDENTS = (f"results/smoke/{folder}/traces.parquet" for folder in ("teacher", "distil"))


@pytest.mark.parametrize(
    ("script", "part", "own", "traces"),
    [
        ("retokenise_traces", "", True, ("--traces", TEACHERS)),
        ("cache_targets", "", True, ("--traces", TEACHERS)),
        ("train_base_student", "--seed 0", True, ()),
        ("pool_student_heads", "", True, ("--traces", STUDENTS)),
        ("train_student", "--method mech", True, ("--traces", STUDENTS)),
        ("decode_model", "--name mech-seed1", True, ()),
        ("score_model", "distil/vanilla/seed1/model", True, ("--teacher-traces", STUDENTS)),
        ("decode_model", "--name teacher", False, ()),
        ("score_model", "teacher/model", False, ("--teacher-traces", TEACHERS)),
        ("score_heads", "", False, ("--traces", TEACHERS)),
        ("judge_claims", "", False, ("--traces", TEACHERS)),
    ],
)
def test_what_reads_a_student_reads_the_students_tokens(
    commands: list[str], script: str, part: str, own: bool, traces: tuple[str, ...]
) -> None:
    found = [line for line in commands if f"/{script}.py " in line and part in line]
    assert found
    for command in found:
        assert ("results/smoke/distil/tokenizer.json" in command) == own
        assert " ".join(traces) in command


@pytest.mark.parametrize("method", ["morsd", "semcot"])
def test_a_method_that_trains_on_other_texts_of_the_teacher_is_refused(
    crossed: Checkout, method: str
) -> None:
    with crossed.edited(SMOKE, METHODS, f"methods: [vanilla, {method}]"):
        done = crossed.snakemake("-n")
    assert done.returncode == 1
    assert f"distil.methods names '{method}'" in done.stdout
    assert "What to do: leave the method out" in done.stdout
    assert "Traceback" not in done.stdout
