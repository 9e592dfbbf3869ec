"""A study of studies: data sets x students, each member an ordinary study with results of its own.

`studies/NAME.yaml` of a joined study holds `members` and no parameters. Its report is made from
the members' results; nothing is computed twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, model_validator

from mechdistill.artifacts import RESULTS
from mechdistill.data.obtainable import why_not_here
from mechdistill.errors import InputError
from mechdistill.study import Distil, Section, Study, StudyName, canonical_json, load_study
from mechdistill.study_errors import Layer, explain
from mechdistill.study_files import (
    MEMBERS,
    OVERLAY_FOLDER,
    base_name,
    name_some,
    overlay_names,
    read_overlay,
)

MEMBER_FILES = {
    "measures": "report/measures.csv",
    "claims": "report/claims.csv",
    "budgets": "report/budget.csv",
    "times": "report/times.csv",
    "report": "report/report.html",
    "comparisons": "significance/comparisons.parquet",
    "scores": "evaluate/scores.parquet",
    "predictions": "evaluate/predictions.parquet",
    "examples": "data/examples.parquet",
    "label_space": "data/label_space.json",
}
"""What the joined report is made from, in the results of each member."""
COMMON = ("significance",)
"""What all members must have in common: one report speaks of one kind of interval."""
REPRODUCE = "python -m mechdistill.reproduce"
COMMON_OF_A_DATA_SET = ("seed", "data")
"""What students are compared on must be the same notes."""


class JoinedFile(Section):
    """What the file of a joined study holds."""

    study: StudyName
    """Name; the joined results go to results/NAME."""
    members: Annotated[tuple[StudyName, ...], Field(min_length=2)]
    """Studies of this folder. The data set of the first stands where the paper's tables have
    MIMIC-IV, the next data set where they have WikiSeeAlso."""

    @model_validator(mode="after")
    def _no_repeats(self) -> Self:
        names = list(self.members)
        if len(set(names)) < len(names):
            raise ValueError(f"{MEMBERS} is {names}: each may stand there once")
        return self


@dataclass(frozen=True)
class Member:
    """One study among those that are joined."""

    study: Study

    @property
    def name(self) -> str:
        return self.study.study

    @property
    def data_set(self) -> str:
        """Name of the data set: that of its source, where the user brings one, or of its world."""
        data = self.study.data
        return data.source.name if data.source is not None else data.world.name

    @property
    def student(self) -> str:
        """What tells its students from those of other members: `llama 3 x 48`."""
        return student_title(self.study.distil)

    def file(self, name: str) -> Path:
        """A file of its results, by its name in `MEMBER_FILES`."""
        return Path(RESULTS, self.name, MEMBER_FILES[name])


@dataclass(frozen=True)
class JoinedStudy:
    """A joined study and its members, complete and valid.

    Attributes:
        left_out: member that cannot be had here -> why.
    """

    study: str
    members: tuple[Member, ...]
    left_out: Mapping[str, str]

    @property
    def restricted(self) -> bool:
        """Whether a member's texts may not be seen."""
        return any(member.study.restricted for member in self.members)

    def without(self, left_out: Mapping[str, str]) -> JoinedStudy:
        """The same without the members that cannot be had here.

        Raises :class:`InputError`: none is left.
        """
        kept = tuple(member for member in self.members if member.name not in left_out)
        if not kept:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
            raise InputError(
                f"no member of {self.study} can be had here: {reasons}", "Mend one of these."
            )
        return JoinedStudy(self.study, kept, dict(left_out))

    def left_out_here(self, root: Path) -> dict[str, str]:
        """Unfinished members whose data cannot be had on this machine, and why."""
        reasons = {
            member.name: why_not_here(member.study.data.model_dump(mode="json"))
            for member in self.members
            if _first_missing(member, root) is not None
        }
        return {name: reason for name, reason in reasons.items() if reason}

    def refuse_unfinished(self, root: Path) -> None:
        """Refuse to join what is not there yet.

        Raises :class:`InputError`: a member lacks a file that the joined report is made from.
        """
        for number, member in enumerate(self.members, start=1):
            missing = _first_missing(member, root)
            if missing is not None:
                raise InputError(
                    f"{member.name}, member {number} of {len(self.members)} of {self.study}, is "
                    f"not finished: {missing} is missing",
                    f"make it: {REPRODUCE} --study {member.name} (or all members and the joined "
                    f"report: {REPRODUCE} --study {self.study})",
                )

    def subset(self, keys: Iterable[str]) -> str:
        """Canonical JSON of some keys, for a rule's parameters.

        `study`, `members` (names in order) and `left_out` are of the joined study; `data_set`,
        `student` and dotted keys of an ordinary study are given for each member by name; a key of
        `COMMON` has one value.
        """
        return canonical_json({key: self._value(key) for key in keys})

    def _value(self, key: str) -> Any:
        own = {
            "study": self.study,
            "members": [member.name for member in self.members],
            "left_out": dict(self.left_out),
        }
        if key in own:
            return own[key]
        if key in ("data_set", "student"):
            return {member.name: getattr(member, key) for member in self.members}
        values = {member.name: _value_at(member.study, key) for member in self.members}
        return values[self.members[0].name] if key.split(".")[0] in COMMON else values


def _first_missing(member: Member, root: Path) -> Path | None:
    return next((f for f in map(member.file, MEMBER_FILES) if not (root / f).is_file()), None)


def student_title(distil: Distil) -> str:
    """Family, layers and width; their weights where they are not float32.

    >>> student_title(study.distil)  # doctest: +SKIP
    'llama 3 x 48, bf16'
    """
    shape = distil.student
    weights = ", bf16" if distil.training.weights == "bfloat16" else ""
    return f"{shape.family} {shape.layers} x {shape.hidden_size}{weights}"


def is_joined(overrides: Mapping[str, Any], root: Path) -> bool:
    """Whether the study that ``overrides`` names (by default that of params.yaml) joins others.

    Raises :class:`InputError`: there is no such study.
    """
    name = overrides.get("study", base_name(root))
    return name != base_name(root) and MEMBERS in read_overlay(name, root).values


def load_joined_study(overrides: Mapping[str, Any], root: Path) -> JoinedStudy:
    """The joined study that ``overrides`` names, with its members, all checked.

    Args:
        overrides: what Snakemake's ``--config`` gives: nothing but ``study``.
        root: folder of params.yaml and studies/.

    Raises :class:`InputError` naming file and key: an unknown key or member, a member that joins
    others itself, members that cannot stand in one report.
    """
    layers = [read_overlay(overrides["study"], root)]
    given = {key: value for key, value in overrides.items() if key != "study"}
    if given:
        layers.append(Layer("--config", given))
    values = {key: value for layer in layers for key, value in layer.values.items()}
    try:
        read = JoinedFile.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        raise explain(error, JoinedFile.model_json_schema(), layers) from error
    source = layers[0].source
    members = tuple(_member(source, number, name, root) for number, name in enumerate(read.members))
    _refuse_strangers(source, members)
    return JoinedStudy(read.study, members, {})


def joined_schema_text() -> str:
    """JSON schema of the file of a joined study."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(schema | JoinedFile.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def _member(source: str, number: int, name: str, root: Path) -> Member:
    where = f"{source}: {MEMBERS}[{number}] names {name!r}"
    there = overlay_names(root)
    if name not in (*there, base_name(root)):
        raise InputError(f"{where}: there is no such study", name_some(there))
    if is_joined({"study": name}, root):
        raise InputError(f"{where}, which joins other studies", "Name its members instead.")
    return Member(load_study({"study": name}, root))


def _refuse_strangers(source: str, members: tuple[Member, ...]) -> None:
    first = members[0]
    by_data_set: dict[str, Member] = {}
    by_place: dict[tuple[str, str], Member] = {}
    for member in members:
        _require_equal(source, first, member, COMMON, "all members have it in common")
        same = by_data_set.setdefault(member.data_set, member)
        why = f"both are of the data set {member.data_set}"
        _require_equal(source, same, member, COMMON_OF_A_DATA_SET, why)
        twin = by_place.setdefault((member.data_set, member.student), member)
        if twin is not member:
            raise InputError(
                f"{source}: {twin.name} and {member.name} have both the data set "
                f"{member.data_set} and students {member.student}",
                "Drop one, or give one other students (distil.student).",
            )


def _require_equal(source: str, one: Member, other: Member, keys: Iterable[str], why: str) -> None:
    for key in keys:
        if one.study.subset([key]) != other.study.subset([key]):
            raise InputError(
                f"{source}: {one.name} and {other.name} differ in {key}: {why}",
                f"Give both the same {key} ({OVERLAY_FOLDER}/{other.name}.yaml).",
            )


def _value_at(study: Study, key: str) -> Any:
    return json.loads(study.subset([key]))[key]
