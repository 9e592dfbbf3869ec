"""C02, C03, C08-C12, C16, C44: where the scored heads lie and what they do.

Layers are counted from 0. Depth is judged on one teacher: the chance ranges below say how the
layers of this teacher's heads fall, not how those of another training would.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from mechdistill.report.claims.registry import Outcome, claim
from mechdistill.report.evidence import Evidence, NotTested
from mechdistill.report.formats import percent, plain, signed
from mechdistill.report.patching import effects, gaps, nearest_bin, under
from mechdistill.report.rankings import (
    NAMES,
    Head,
    against_chance,
    depth,
    jaccard,
    name,
    ranked_heads,
    top_size,
)
from mechdistill.report.trajectories import stage_start
from mechdistill.report.verdicts import Part, Verdict

EARLY = 6 / 80
"""The paper's early layers, L1-L6 of 80, as a share of the depth."""
DYNAMIC_HEADS = 4
"""Lines of Figure 7, right."""
UNHARMED = 0.01
"""Relative change of the kurtosis below which the constant counts as harmless (C44)."""


@claim("C02", "rankings")
def coarse_heads_are_early(evidence: Evidence) -> Outcome:
    rankings, design = evidence.table("rankings"), evidence.design
    early = max(1, math.floor(EARLY * design.layers + 0.5))
    parts = []
    for anchor in ("unembed", "embed", "context"):
        try:
            heads = ranked_heads(rankings, 1, anchor=anchor)
        except NotTested:
            continue
        parts.append(_early_share(heads, early, f"anchor {anchor}", evidence))
    if not parts:
        raise NotTested("there is no ranking by CoarseScore")
    heads = ranked_heads(rankings, 1)
    size = top_size(len(heads))
    listed = ", ".join(name(head) for head in heads[:size])
    return Outcome(
        (parts[0],),
        f"Early means the first {early} of {design.layers} layers. Top {size} (anchor unembed): "
        f"{listed}. Other anchor spaces: "
        + (
            ", ".join(f"{p.name} {signed(p.estimate.effect)}: {p.verdict}" for p in parts[1:])
            or "none measured"
        )
        + ". One teacher seed.",
    )


def _early_share(heads: list[Head], early: int, label: str, evidence: Evidence) -> Part:
    layers = np.array([layer for layer, _ in heads])
    size = top_size(len(heads))
    boot = evidence.design.bootstrap
    estimate = against_chance(
        float((layers[:size] < early).mean()),
        lambda rng: float((rng.permutation(layers)[:size] < early).mean()),
        size,
        "share of heads",
        boot.resamples,
        boot.seed,
    )
    return Part(f"share of early layers in the top {size} minus chance, {label}", estimate, +1)


@claim("C03", "attention_rows")
def top_head_reads_anchors(evidence: Evidence) -> Outcome:
    rows, boot = evidence.table("attention_rows"), evidence.design.bootstrap
    if "anchor_mass" not in rows.columns:
        raise NotTested("the attention rows are not matched with anchor tokens")
    first = rows[rows["phase"] == 1]
    top = ranked_heads(evidence.table("rankings"), 1)[0]
    mine = first[(first["layer"] == top[0]) & (first["head"] == top[1])].set_index("example")
    if mine.empty:
        raise NotTested(f"no attention rows of the top head {name(top)} were kept")
    others = (
        first.drop(first.index[(first["layer"] == top[0]) & (first["head"] == top[1])])
        .groupby("example")["anchor_mass"]
        .mean()
    )
    beyond_chance = mine["anchor_mass"] - mine["anchor_mass_expected"]
    beyond_heads = (mine["anchor_mass"] - others).dropna()
    note = (
        f"{name(top)} puts {percent(100 * float(mine['anchor_mass'].mean()))} of its attention at "
        "early queries on the anchor tokens of the note; as many prompt tokens drawn at random "
        f"would get {percent(100 * float(mine['anchor_mass_expected'].mean()))}."
    )
    return Outcome(
        (
            Part(
                f"attention of {name(top)} on anchor tokens minus count-matched prompt tokens",
                boot.mean(beyond_chance, "share of attention"),
                +1,
            ),
            Part(
                f"attention on anchor tokens, {name(top)} minus the mean of all other heads",
                boot.mean(beyond_heads, "share of attention"),
                +1,
            ),
        ),
        note,
    )


@claim("C08")
def mlps_matter_little(evidence: Evidence) -> Outcome:
    raise NotTested("MLP outputs were not patched")


@claim("C09", "rankings")
def refine_heads_are_later(evidence: Evidence) -> Outcome:
    rankings, design = evidence.table("rankings"), evidence.design
    coarse, refine = ranked_heads(rankings, 1), ranked_heads(rankings, 2)
    size = top_size(len(refine))

    def gap(one: list[Head], other: list[Head]) -> float:
        first, second = ([depth(h, design.layers) for h in group] for group in (one, other))
        return float(np.median(second) - np.median(first))

    def shuffled(rng: np.random.Generator) -> float:
        one, other = (
            [heads[i] for i in rng.permutation(len(heads))[:size]] for heads in (coarse, refine)
        )
        return gap(one, other)

    boot = design.bootstrap
    estimate = against_chance(
        gap(coarse[:size], refine[:size]),
        shuffled,
        size,
        "share of depth",
        boot.resamples,
        boot.seed,
    )
    medians = [
        plain(float(np.median([layer for layer, _ in heads[:size]]))) for heads in (coarse, refine)
    ]
    return Outcome(
        (Part(f"median depth of the top {size}, refine minus coarse, less chance", estimate, +1),),
        f"Median layer (from 0, of {design.layers}): coarse {medians[0]}, refine {medians[1]}. "
        "One teacher seed.",
    )


@claim("C10", "dynamics")
def shortlist_similarity_rises(evidence: Evidence) -> Outcome:
    return _moves(evidence, "similarity_shortlist", +1)


@claim("C11", "dynamics")
def near_miss_similarity_falls(evidence: Evidence) -> Outcome:
    return _moves(evidence, "similarity_near_miss", -1)


@claim("C12", "dynamics")
def margin_alignment_rises(evidence: Evidence) -> Outcome:
    return _moves(evidence, "help_cosine", +1)


def _moves(evidence: Evidence, quantity: str, sign: int) -> Outcome:
    """Slope over the reasoning's stages, mean of the top heads, notes resampled."""
    frame = evidence.table("dynamics")
    top = ranked_heads(evidence.table("rankings"), 2)[:DYNAMIC_HEADS]
    keys = pd.MultiIndex.from_frame(frame[["layer", "head"]])
    chosen = frame[keys.isin(top) & (frame["quantity"] == quantity) & frame["value"].notna()]
    if chosen.empty:
        raise NotTested(f"{quantity} of the top refine heads is defined at no stage")
    stages = sorted(chosen["stage"].unique(), key=stage_start)
    by_note = chosen.pivot_table(index="example", columns="stage", values="value")[stages]
    by_note.columns = pd.Index(range(len(stages)))
    steps = by_note.apply(_slope, axis=1)
    means = "; ".join(f"{s}: {plain(float(by_note[i].mean()))}" for i, s in enumerate(stages))
    part = Part(
        f"{quantity} of the top {len(top)} refine heads, slope per stage",
        evidence.design.bootstrap.mean(steps, "cosine per stage"),
        sign,
    )
    return Outcome((part,), f"Mean by stage (reasoning tokens): {means}.")


def _slope(row: pd.Series) -> float:
    known = row.dropna()
    if len(known) < 2:
        return float("nan")
    return float(np.polyfit(known.index.to_numpy(float), known.to_numpy(float), 1)[0])


@claim("C16", "rankings", "margin")
def phases_are_isolatable(evidence: Evidence) -> Outcome:
    rankings, boot = evidence.table("rankings"), evidence.design.bootstrap
    coarse, refine = ranked_heads(rankings, 1), ranked_heads(rankings, 2)
    size = top_size(len(coarse))

    def chance(rng: np.random.Generator) -> float:
        one, other = ([coarse[i] for i in rng.permutation(len(coarse))[:size]] for _ in range(2))
        return jaccard(one, other)

    overlap = against_chance(
        jaccard(coarse[:size], refine[:size]),
        chance,
        size,
        "Jaccard index",
        boot.resamples,
        boot.seed,
    )
    parts = [
        Part(f"overlap of the top {size} of each phase minus chance", overlap, +1, absent=True)
    ]
    shared = ", ".join(name(h) for h in coarse[:size] if h in refine[:size]) or "none"
    note = f"Shared heads: {shared}."
    crossed = _dissociation(evidence)
    if not crossed:
        note += (
            " The crossed patching (each set on the other's corruption) was not run, so the "
            "second half of the claim is open."
        )
        whole = parts[0].verdict
        return Outcome(
            tuple(parts), note, whole if whole is Verdict.DOES_NOT_HOLD else Verdict.UNDECIDED
        )
    return Outcome((*parts, *crossed), note)


def _dissociation(evidence: Evidence) -> list[Part]:
    """Share of the gap restored on the own minus on the other decision, output site, pool size."""
    try:
        frame = evidence.table("margin")
    except NotTested:
        return []
    parts = []
    for phase, own, other in ((1, "K1", "K2"), (2, "K2", "K1")):
        try:
            shares = [_restored(frame, phase, twin, evidence) for twin in (own, other)]
        except NotTested:
            return []
        both = pd.concat(shares, axis=1).dropna().to_numpy(float)
        estimate = evidence.design.bootstrap.statistic(
            both,
            lambda s: (
                100
                * (s[..., 0].mean(1) / s[..., 1].mean(1) - s[..., 2].mean(1) / s[..., 3].mean(1))
            ),
            "percentage points of the gap",
        )
        parts.append(Part(f"{NAMES[phase]} heads restore {own} more than {other}", estimate, +1))
    return parts


def _restored(frame: pd.DataFrame, phase: int, twin: str, evidence: Evidence) -> pd.DataFrame:
    effect = under(effects(frame, phase, "output", "denoise", "margin", twin), "top")
    size = nearest_bin(effect, evidence.design.pool_size)
    gap = gaps(frame, phase, "output", "denoise", "margin", twin)
    return pd.DataFrame({"effect": effect[size], "gap": gap})


@claim("C44", "scores")
def kurtosis_is_stable(evidence: Evidence) -> Outcome:
    scores = evidence.table("scores")
    teacher = scores[scores["method"] == "teacher"]
    by_metric = {
        metric: rows.set_index("example")["value"]
        for metric, rows in teacher.groupby("metric")
        if metric in ("eps_change", "eps_change_without_sinks")
    }
    if "eps_change" not in by_metric:
        raise NotTested("the teacher has no pooled row: its pool of phase 1 is empty")
    printed = by_metric["eps_change"]
    estimate = evidence.design.bootstrap.mean(printed - UNHARMED, "relative change")
    without = by_metric["eps_change_without_sinks"].mean()
    return Outcome(
        (Part("mean relative change of the pooled row's kurtosis by eps, less 1 %", estimate, -1),),
        f"Teacher's pooled row at each early query, over the keys that it sees: eps changes its "
        f"fourth standardised moment by {percent(100 * float(printed.mean()))} on average, and by "
        f"more than 1 % in {percent(100 * float((printed > UNHARMED).mean()))} of {len(printed)} "
        f"notes; without the attention sinks by {percent(100 * float(without))}. Longer contexts "
        "were not run; the change grows as rows flatten.",
    )
