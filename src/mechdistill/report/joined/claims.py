"""The members' verdicts beside each other, and the claims that only several members can answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mechdistill.report.claims.registry import Outcome, outcome_of, outcome_row
from mechdistill.report.evidence import NotTested
from mechdistill.report.joined.places import Place, placed
from mechdistill.report.metrics import TABLE1, Metric, method_name
from mechdistill.report.verdicts import Estimate, Part, Verdict
from mechdistill.significance.plan import PLAIN
from mechdistill.significance.students import GAIN, LARGER

Z = 1.959964
"""Two-sided 95 % of a normal distribution."""


@dataclass(frozen=True)
class Joined:
    """What the claims across members are judged by: contrasts, and the data sets in order."""

    contrasts: pd.DataFrame
    data_sets: Sequence[str]


def joined_claims(
    members: Mapping[Place, pd.DataFrame],
    seeds: Mapping[Place, int],
    joined: Joined,
    name: str,
    source: str,
) -> pd.DataFrame:
    """Rows of `judge_all` of every member, then those that the members answer together.

    Args:
        members: claims of each member.
        seeds: training seeds of each.
        name: of the joined study: the member of the rows that are answered together.
        source: file of the contrasts.
    """
    own = placed(members, seeds=seeds)
    rows = [
        {**outcome_row(id, outcome_of(judge, joined), source), "member": name}
        for id, judge in ACROSS.items()
    ]
    everywhere = pd.DataFrame(rows).assign(data_set="all", student="all", seeds=min(seeds.values()))
    return pd.concat([own, everywhere[list(own.columns)]], ignore_index=True)


def smaller_on_the_first(joined: Joined) -> Outcome:
    """C29: gains over vanilla, students averaged, on the first data set less on the second."""
    if len(joined.data_sets) < 2:
        raise NotTested("the study has one data set")
    first, second = joined.data_sets[:2]
    parts = []
    for metric in TABLE1:
        one = _gain(joined.contrasts, first, metric)
        other = _gain(joined.contrasts, second, metric)
        if one is not None and other is not None:
            name = f"{metric.short}, gain on {first} minus gain on {second}"
            parts.append(Part(name, _independent(one, other, metric), -1))
    if not parts:
        raise NotTested("mech was not compared with vanilla on both data sets")
    smaller = sum(part.estimate.effect < 0 for part in parts)
    return Outcome(
        tuple(parts),
        f"A gain counts towards better; {smaller} of {len(parts)} are smaller on {first}. The data "
        "sets share no notes: the interval is that of two independent differences.",
    )


def larger_is_better(joined: Joined) -> Outcome:
    """C31: every method of the largest student less the same of the smallest, on every metric."""
    rows = joined.contrasts[joined.contrasts["question"] == LARGER]
    by_key = {metric.key: metric for metric in TABLE1}
    parts = []
    for row in rows[rows["metric"].isin(by_key)].to_dict("records"):
        metric = by_key[row["metric"]]
        name = f"{metric.short}, {row['data_set']}, {method_name(row['method'])}, {row['students']}"
        parts.append(Part(name, _estimate(row, metric), metric.better))
    if not parts:
        raise NotTested("the study has one student size")
    better = sum(part.estimate.effect * part.sign > 0 for part in parts)
    shown = sum(part.verdict is Verdict.HOLDS for part in parts)
    return Outcome(
        tuple(parts),
        f"Larger minus smaller student; {better} of {len(parts)} differences are towards better, "
        f"{shown} with their interval. Intervals are not corrected for their number.",
    )


ACROSS = {"C29": smaller_on_the_first, "C31": larger_is_better}


def verdict_of(label: str) -> Verdict:
    """The verdict of a label such as `no difference (detectable difference 0.07)`."""
    return next(v for v in sorted(Verdict, key=len, reverse=True) if label.startswith(v))


def claim_matrix(claims: pd.DataFrame, members: Sequence[str]) -> list[dict[str, object]]:
    """One row a claim: its statement and a verdict for each of `members`, "" where it has none."""
    rows = []
    for (id, statement), own in claims.groupby(["id", "statement"], sort=False):
        by_member = {row["member"]: row for row in own.to_dict("records")}
        cells = []
        for member in members:
            row = by_member.get(member)
            verdict = verdict_of(str(row["verdict"])) if row else ""
            cells.append(
                {
                    "verdict": str(row["verdict"]) if row else "",
                    "css": str(verdict).replace(" ", "-"),
                    "detail": str(row["detail"]) if row else "",
                }
            )
        rows.append({"id": id, "statement": statement, "cells": cells})
    return rows


def verdict_counts(claims: pd.DataFrame, member: str) -> dict[Verdict, int]:
    """How many of a member's claims C01 to C46 got each verdict."""
    own = claims[(claims["member"] == member) & claims["id"].str.fullmatch(r"C\d\d")]
    found = [verdict_of(str(label)) for label in own["verdict"]]
    return {verdict: found.count(verdict) for verdict in Verdict}


def _gain(contrasts: pd.DataFrame, data_set: str, metric: Metric) -> Mapping[Any, Any] | None:
    rows = contrasts[
        (contrasts["question"] == GAIN)
        & (contrasts["baseline"] == PLAIN)
        & (contrasts["data_set"] == data_set)
        & (contrasts["metric"] == metric.key)
    ]
    return rows.to_dict("records")[0] if len(rows) else None


def _independent(one: Mapping[Any, Any], other: Mapping[Any, Any], metric: Metric) -> Estimate:
    effect = metric.better * (one["difference"] - other["difference"])
    half = Z * math.hypot(one["standard_error"], other["standard_error"])
    notes = min(int(one["n_documents"]), int(other["n_documents"]))
    return Estimate(effect, effect - half, effect + half, notes, metric.unit)


def _estimate(row: Mapping[Any, Any], metric: Metric) -> Estimate:
    effect, low, high = (float(row[key]) for key in ("difference", "ci_low", "ci_high"))
    return Estimate(effect, low, high, int(row["n_documents"]), metric.unit)
