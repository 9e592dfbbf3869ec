"""Where each member stands: its data set and its student."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

Read = TypeVar("Read")


@dataclass(frozen=True)
class Place:
    """A member of a joined study."""

    member: str
    data_set: str
    student: str

    @property
    def title(self) -> str:
        return f"{self.data_set}, {self.student}"


def places(
    members: Iterable[str], data_set: Mapping[str, str], student: Mapping[str, str]
) -> tuple[Place, ...]:
    """The members in the order of the study."""
    return tuple(Place(name, data_set[name], student[name]) for name in members)


def by_place(
    members: Iterable[Place], paths: Sequence[str], read: Callable[[str], Read]
) -> dict[Place, Read]:
    """What is read from one file of each member.

    Args:
        paths: as many as there are members, in their order.
    """
    return {place: read(path) for place, path in zip(members, paths, strict=True)}


def data_sets(members: Iterable[Place]) -> tuple[str, ...]:
    """Each once, in the order of the study."""
    return tuple(dict.fromkeys(member.data_set for member in members))


def placed(frames: Mapping[Place, pd.DataFrame], **more: Mapping[Place, Any]) -> pd.DataFrame:
    """The members' tables below each other, behind columns that say whose rows they are."""
    parts = []
    for place, frame in frames.items():
        own = {"data_set": place.data_set, "student": place.student, "member": place.member}
        own |= {name: values[place] for name, values in more.items()}
        parts.append(pd.concat([pd.DataFrame(own, index=frame.index), frame], axis=1))
    return pd.concat(parts, ignore_index=True)
