"""Joined studies: members that fit together, and errors that name file and key."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

from mechdistill import joined_study
from mechdistill.errors import InputError
from mechdistill.joined_study import (
    MEMBER_FILES,
    Member,
    is_joined,
    joined_schema_text,
    load_joined_study,
)
from mechdistill.significance.plan import ABLATIONS
from mechdistill.yaml_mapping import read_yaml_mapping

ROOT = Path(__file__).resolve().parents[1]
FULL = "embedded-full"
PAPER = ("vanilla", "unicott", "morsd", "semcot", "cwt", "mech")


@pytest.fixture
def copied_root(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copytree(ROOT / "studies", tmp_path / "studies")
    return tmp_path


def written(root: Path, text: str, **members: str) -> Path:
    for name, overlay in members.items():
        (root / "studies" / f"{name}.yaml").write_text(f"{overlay}\n")
    (root / "studies" / "odd.yaml").write_text(f"{text}\n")
    return root


def test_the_full_study_is_two_data_sets_and_two_student_sizes() -> None:
    joined = load_joined_study({"study": FULL}, ROOT)
    places = [(member.data_set, member.student) for member in joined.members]
    assert places == [
        (data_set, student)
        for data_set in ("icd", "foldoc")
        for student in ("llama 3 x 48", "llama 3 x 64")
    ]
    for member in joined.members:
        assert member.study.distil.methods[: len(PAPER)] == PAPER
        assert set(ABLATIONS) < set(member.study.distil.methods)
        assert member.study.distil.seeds == (0, 1, 2, 3, 4)
        assert member.study.evaluate.simulator is not None


def test_students_of_two_families_differ_in_architecture_tokenizer_and_weights_alone() -> None:
    same, cross, *others = load_joined_study({"study": "families"}, ROOT).members
    assert (same.student, cross.student) == ("llama 3 x 48", "qwen3 3 x 48")
    assert [m.student for m in others] == ["llama 3 x 48, bf16", "qwen3 3 x 48, bf16"]
    assert same.study.teacher.architecture == cross.study.teacher.architecture
    assert same.study.teacher.architecture.family == "llama"
    for float32, other in zip((same, cross), others, strict=True):
        one, two = (m.study.model_dump(mode="json") for m in (float32, other))
        weights = [values["distil"]["training"].pop("weights") for values in (one, two)]
        assert weights == ["float32", "bfloat16"]
        assert one.pop("study") + "-bf16" == two.pop("study")
        assert one == two
    one, two = (m.study.model_dump(mode="json") for m in (same, cross))
    assert (one["distil"].pop("student_tokenizer"), one.pop("study")) == (None, "families-same")
    assert two["distil"].pop("student_tokenizer")["model"] == "bpe"
    assert one["distil"]["student"].pop("family") != two["distil"]["student"].pop("family")
    two.pop("study")
    assert one == two


def test_the_students_are_all_that_differs_within_a_data_set() -> None:
    small, large, *_ = load_joined_study({"study": FULL}, ROOT).members
    one, other = (m.study.model_dump(mode="json") for m in (small, large))
    assert one["distil"].pop("student") != other["distil"].pop("student")
    assert one | {"study": ""} == other | {"study": ""}


def test_which_studies_are_joined() -> None:
    assert is_joined({"study": FULL}, ROOT)
    assert not any(is_joined(given, ROOT) for given in ({}, {"study": "smoke"}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "members: smoke",
            r'^studies/odd\.yaml: members is "smoke" \(allowed: a list of',
        ),
        ("members: [smoke]", r"^studies/odd\.yaml: members is \[\"smoke\"\] .*at least 2"),
        ("members: [smoke, smoke]", r"odd\.yaml: members is .*: each may stand there once"),
        ("members: [smoke, none]", r"odd\.yaml: members\[1\] names 'none': there is no such study"),
        (f"members: [smoke, {FULL}]", r"members\[1\] names 'embedded-full', which joins other"),
        ("members: [smoke, foldoc]\nseed: 3", r"odd\.yaml: seed is an unknown key .*members"),
        ("members: [smoke, foldoc]", r"smoke and foldoc differ in significance"),
        ("members: [embedded, shorter]", r"embedded and shorter differ in data: .* data set icd"),
        ("members: [embedded, twin]", r"embedded and twin have both the data set icd and students"),
        ("members: [embedded, wrong]", r"^studies/wrong\.yaml: seed is \"x\""),
    ],
)
def test_what_cannot_be_joined_is_named(copied_root: Path, text: str, message: str) -> None:
    written(
        copied_root,
        text,
        shorter="data: {splits: {test: 50}}",
        twin="distil: {seeds: [7]}",
        wrong="seed: x",
    )
    with pytest.raises(InputError, match=message):
        load_joined_study({"study": "odd"}, copied_root)


def test_the_command_line_gives_a_joined_study_no_parameter() -> None:
    with pytest.raises(InputError, match=r"^--config: seed is an unknown key"):
        load_joined_study({"study": FULL, "seed": 3}, ROOT)


def test_keys_are_given_for_each_member_in_order() -> None:
    joined = load_joined_study({"study": FULL}, ROOT)
    names = [member.name for member in joined.members]
    found = json.loads(joined.subset(["members", "data_set", "distil.seeds", "significance.seed"]))
    assert found["members"] == names
    assert found["data_set"] == dict(zip(names, ["icd", "icd", "foldoc", "foldoc"]))
    assert found["distil.seeds"] == {name: [0, 1, 2, 3, 4] for name in names}
    assert found["significance.seed"] == 0


def test_members_that_cannot_be_had_are_left_out_with_the_reason() -> None:
    joined = load_joined_study({"study": FULL}, ROOT)
    reasons = {member.name: "no dictionary" for member in joined.members[2:]}
    fewer = joined.without(reasons)
    assert [member.data_set for member in fewer.members] == ["icd", "icd"]
    assert json.loads(fewer.subset(["left_out"])) == {"left_out": reasons}
    with pytest.raises(InputError, match=r"no member of embedded-full can be had here: .*no dict"):
        joined.without({member.name: "no dictionary" for member in joined.members})


def test_the_schema_is_that_of_the_code_and_takes_the_file() -> None:
    path = ROOT / "workflow" / "schemas" / "joined.schema.json"
    assert path.read_text(encoding="utf-8") == joined_schema_text()
    jsonschema.validate(
        read_yaml_mapping(ROOT / "studies" / f"{FULL}.yaml"), json.loads(joined_schema_text())
    )


def test_a_data_set_that_a_user_brings_is_called_by_its_source() -> None:
    member = load_joined_study({"study": FULL}, ROOT).members[0]
    data = member.study.data
    brought = type("Brought", (), {"name": "mimic-iv"})
    study = member.study.model_copy(update={"data": data.model_copy(update={"source": brought})})
    assert Member(study).data_set == "mimic-iv"


def finished(root: Path, *names: str) -> None:
    for name in names:
        for file in MEMBER_FILES.values():
            path = root / "results" / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()


def test_what_is_not_finished_is_named_with_its_command(tmp_path: Path) -> None:
    joined = load_joined_study({"study": FULL}, ROOT)
    names = [member.name for member in joined.members]
    finished(tmp_path, *names)
    joined.refuse_unfinished(tmp_path)
    (tmp_path / "results" / names[1] / "report/claims.csv").unlink()
    with pytest.raises(InputError) as caught:
        joined.refuse_unfinished(tmp_path)
    assert caught.value.what == (
        f"{names[1]}, member 2 of 4 of {FULL}, is not finished: "
        f"results/{names[1]}/report/claims.csv is missing"
    )
    assert f"python -m mechdistill.reproduce --study {names[1]} (" in caught.value.remedy


def test_only_what_is_not_finished_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        joined_study, "why_not_here", lambda data: "no dictionary" if "foldoc" in data else ""
    )
    joined = load_joined_study({"study": FULL}, ROOT)
    names = [member.name for member in joined.members]
    finished(tmp_path, names[2])
    assert joined.left_out_here(tmp_path) == {names[3]: "no dictionary"}
