"""Pairs of notes whose first decision of a kind goes different ways, for knock-in.

A donor's decision can be carried over only where the recipient could have decided so: its token is
among the alternatives that the recipient's own event leaves, and at an event of a region, its
region is one of those alternatives' regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mechdistill.data.labels import LabelSpace
from mechdistill.patching.event_families import first_events
from mechdistill.patching.null_events import Reading
from mechdistill.traces.decision_events import Family

EVENTS = (
    *("example", "split", "kind", "segment", "form", "query", "target", "foils", "code", "region"),
    *("foil_codes", "repeat"),
)
"""Columns read of the table of events (`mechdistill.traces.event_table`)."""


@dataclass(frozen=True)
class First:
    """The first decision of a kind and segment that a note takes.

    Args:
        regions: of the alternatives that are left.
    """

    example: str
    form: str
    reading: Reading
    region: str
    regions: frozenset[str]


@dataclass(frozen=True)
class DonorPair:
    """A recipient, a donor that decides otherwise, and one that decides alike, if there is one.

    Args:
        alike: of the null.
    """

    recipient: First
    donor: First
    alike: First | None


def first_decisions(
    events: pd.DataFrame, family: Family, examples: Sequence[str], space: LabelSpace
) -> list[First]:
    """The first event of a family in each of the examples that has one.

    Args:
        events: columns EVENTS.
        space: that the codes belong to.
    """
    region_of = {label.code: label.region for label in space.labels}
    rows = first_events(events, family)
    rows = rows[rows["example"].isin(set(examples))].sort_values("query", kind="stable")
    rows = rows.drop_duplicates("example").sort_values("example")
    return [
        First(
            row["example"],
            row["form"],
            Reading(int(row["query"]), int(row["target"]), tuple(map(int, row["foils"]))),
            row["region"],
            frozenset(region_of.get(code, code) for code in row["foil_codes"]),
        )
        for row in rows.to_dict("records")
    ]


def donor_pairs(
    decisions: Sequence[First], family: Family, *, draws: int, seed: int
) -> list[DonorPair]:
    """For each recipient, donors that decide otherwise, each with one that decides alike.

    Args:
        decisions: of one family, one a note.
        draws: of donors for each recipient; fewer where there are not as many.
        seed: of the draws.
    """
    pairs = []
    for recipient in decisions:
        same_form = [
            other
            for other in decisions
            if other.example != recipient.example and other.form == recipient.form
        ]
        otherwise = [other for other in same_form if _may_carry_over(other, recipient, family)]
        alike = [other for other in same_form if _decides_alike(other, recipient, family)]
        rng = np.random.default_rng([seed, 10, *recipient.example.encode()])
        for i in rng.permutation(len(otherwise))[:draws]:
            null = alike[int(rng.integers(len(alike)))] if alike else None
            pairs.append(DonorPair(recipient, otherwise[i], null))
    return pairs


def _may_carry_over(donor: First, recipient: First, family: Family) -> bool:
    named = donor.reading.target in recipient.reading.foils
    if family[0] != "region":
        return named
    return named and donor.region != recipient.region and donor.region in recipient.regions


def _decides_alike(other: First, recipient: First, family: Family) -> bool:
    same = other.reading.target == recipient.reading.target
    return same and (family[0] != "region" or other.region == recipient.region)
