"""V01-V08, of version 2: decisions as events, the heads that take them.

V01, V02, V04 and V06 are read on the teacher's events and on exact ablation, V07 on what the heads
that count attend to, V08 some tokens before the events; what the study has no file for is not
tested.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from mechdistill.report.claims.registry import Outcome, claim
from mechdistill.report.elicitation import at_middle
from mechdistill.report.evidence import Evidence, NotTested
from mechdistill.report.formats import interval, percent, plain, signed
from mechdistill.report.head_sets import largest_sets, overlaps
from mechdistill.report.verdicts import Estimate, Part, Verdict, conjunction
from mechdistill.traces.decision_events import KINDS

FAMILY = ["kind", "segment"]
ESSENTIALLY_EVERY = 0.9
"""Share of notes from which on an effect is said to stand on essentially every note (ours)."""
SEVERAL = 4
"""Tokens before a decision at which it is said to be elicited several tokens before (ours)."""


@claim("V01", "events")
def decisions_are_events(evidence: Evidence) -> Outcome:
    """Every kind is found in the reasoning; the model's margin speaks for the token it takes."""
    events = evidence.table("events")
    first = events[(events["repeat"] == 0) & (events["segment"] == "reasoning")]
    parts, missing, counts = [], [], []
    for kind in KINDS:
        own = first[first["kind"] == kind]
        if own.empty:
            missing.append(kind)
            continue
        margins = own.groupby("example")["margin"].mean()
        margin = evidence.design.bootstrap.mean(margins, "logits")
        parts.append(Part(f"margin of {kind} decisions", margin, +1))
        counts.append(f"{kind} {len(own)} on {len(margins)} notes")
    note = (
        f"First events in the reasoning: {', '.join(counts) or 'none'}. A greedy model takes the "
        "likeliest token, so its margin is below 0 only where another way to write was likelier."
    )
    if not missing:
        return Outcome(tuple(parts), note)
    return Outcome(
        tuple(parts), f"{note} None is of the kind {', '.join(missing)}.", Verdict.UNDECIDED
    )


@claim("V02", "attribution")
def attribution_ranks_as_ablation(evidence: Evidence) -> Outcome:
    rows = evidence.table("attribution").to_dict("records")
    parts = tuple(
        Part(
            f"rank correlation at {row['kind']} decisions in the {row['segment']}",
            Estimate(row["spearman"], row["ci_low"], row["ci_high"], int(row["n"]), "correlation"),
            +1,
        )
        for row in rows
    )
    shares = [row["captured"] for row in rows if np.isfinite(row["captured"])]
    least = f"at least {percent(100 * min(shares))}" if shares else "an unknown share"
    return Outcome(
        parts,
        f"The heads of highest attribution have {least} of the effects of as many heads with the "
        "largest.",
    )


@claim("V03", "knock_in")
def knock_in_carries_the_decision(evidence: Evidence) -> Outcome:
    """The donor's outputs move the margin: more than random heads', and than those of a like note.

    Read at the largest number of heads up to a quarter of all; pairs are averaged by recipient.
    """
    rows = evidence.table("knock_in")
    few, size = _few_heads(rows, evidence, "knocked in")
    moved = few.assign(
        moved=lambda own: own["patched"] - own["start"], whole=lambda own: own["end"] - own["start"]
    )
    parts, shares = [], []
    for (kind, segment), own in moved.groupby(FAMILY, sort=False):
        where = f"{kind} decisions in the {segment}"
        each = own.pivot_table(index="example", columns=["null", "ranking"], values="moved")
        for name, control in ((f"random {size}", ("", "random")), ("null", ("same_way", "top"))):
            if {("", "top"), control} <= set(each.columns):
                beyond = each["", "top"] - each[control]
                estimate = evidence.design.bootstrap.mean(beyond, "logits")
                parts.append(Part(f"{where}, top {size} minus {name}", estimate, +1))
        of_donor = own[(own["null"] == "") & (own["ranking"] == "top")]
        whole = float(of_donor.groupby("example")["whole"].mean().mean())
        if whole > 0 and ("", "top") in each.columns:
            shares.append(f"{where}: {percent(100 * float(each['', 'top'].mean()) / whole)}")
    if not parts:
        raise NotTested("no controls were knocked in beside the top heads")
    return Outcome(
        tuple(parts),
        f"Share of the way that all heads' outputs go: {'; '.join(shares) or 'not defined'}."
        " The null is a note that decides as the recipient does.",
    )


@claim("V04", "ablation", "head_effects")
def nulls_discount_generic_heads(evidence: Evidence) -> Outcome:
    """Heads with an effect on decisions move tokens that decide nothing too; some are dropped.

    Heads are picked by their effect on the events, not by the null on which they are read.
    """
    effects, ablation = evidence.table("head_effects"), evidence.table("ablation")
    moving = effects[effects["ci_low"] > 0]
    if moving.empty:
        raise NotTested("no head has an effect on decisions that a null could discount")
    discounted = moving[~moving["above_null"].astype(bool)]
    key = [*FAMILY, "layer", "head"]
    at_nulls = ablation[ablation["null"] == "other_token"].merge(moving[key], on=key)
    by_note = at_nulls.groupby("example")["effect"].mean()
    part = Part(
        "effect on other tokens, of heads with an effect on decisions",
        evidence.design.bootstrap.mean(by_note, "logits"),
        +1,
    )
    counts = [
        f"{kind}, {segment}: {int((~own['above_null'].astype(bool)).sum())} of {len(own)}"
        for (kind, segment), own in moving.groupby(FAMILY, sort=False)
    ]
    note = f"Heads with an effect that do not exceed their nulls: {'; '.join(counts)}."
    return Outcome((part,), note, Verdict.DOES_NOT_HOLD if discounted.empty else None)


@claim("V05")
def all_codes_in_context(evidence: Evidence) -> Outcome:
    raise NotTested(
        "it names a setting, discharge summaries of MIMIC-IV with all 5,651 codes in context, "
        "and no effect; the data card tells what this study's prompts hold"
    )


@claim("V06", "head_sets")
def small_set_is_necessary_and_sufficient(evidence: Evidence) -> Outcome:
    """Ablated, the set takes more than random heads do; alone, it gives more; on nearly all notes.

    Read at the largest number of heads up to a quarter of all.
    """
    sets = evidence.table("head_sets")
    chosen, size = _few_heads(sets, evidence, "ablated")
    parts, shares = [], []
    for (kind, segment), rows in chosen.groupby(FAMILY, sort=False):
        where = f"{kind} decisions in the {segment}"
        for mode, verb in (("ablated", "necessary"), ("kept", "sufficient")):
            done = _done(rows, mode)
            if done is None:
                continue
            more = done["top"] - done["random"]
            name = f"{verb} for {where}, top minus random {size}"
            parts.append(Part(name, evidence.design.bootstrap.mean(more, "logits"), +1))
            every = f"{verb} for {where}, share of notes less {percent(100 * ESSENTIALLY_EVERY)}"
            parts.append(Part(every, _share_of_notes(more > 0), -1, absent=True))
            whole = float(done["whole"].mean())
            if whole > 0:
                shares.append(f"{where}, {mode}: {percent(100 * done['top'].mean() / whole)}")
    if not parts:
        raise NotTested("no random heads were ablated beside the top heads")
    return Outcome(
        tuple(parts),
        f"One set of {size} of {evidence.design.all_heads} heads for all notes, found on others, "
        f"by ablation alone. Share of what all heads do: {'; '.join(shares) or 'not defined'}.",
    )


def _few_heads(rows: pd.DataFrame, evidence: Evidence, done: str) -> tuple[pd.DataFrame, int]:
    """Rows of the largest sets of at most a quarter of all heads, and how many heads they have."""
    few = largest_sets(rows, evidence.design.few_heads)
    if few.empty:
        raise NotTested(f"no set of at most a quarter of the heads was {done}")
    return few, int(few["bin"].iloc[0])


def _done(rows: pd.DataFrame, mode: str) -> pd.DataFrame | None:
    """A note a row: logits that top and random heads take away or give, and that all heads do."""
    own = rows[rows["mode"] == mode]
    if not {"top", "random"} <= set(own["ranking"]):
        return None
    moved = own["margin"] - own["patched"] if mode == "ablated" else own["patched"] - own["floor"]
    own = own.assign(moved=moved, whole=own["margin"] - own["floor"])
    each = own.pivot_table(index="example", columns="ranking", values="moved")
    return each[["top", "random"]].assign(whole=own.groupby("example")["whole"].first()).dropna()


def _share_of_notes(true: pd.Series) -> Estimate:
    """Share of notes less `ESSENTIALLY_EVERY`, with the exact interval of Clopper and Pearson."""
    if true.empty:
        return Estimate(float("nan"), float("nan"), float("nan"), 0, "share of notes")
    found = stats.binomtest(int(true.sum()), len(true))
    ends = found.proportion_ci(0.95, method="exact")
    shares = (found.statistic, ends.low, ends.high)
    effect, low, high = (float(value) - ESSENTIALLY_EVERY for value in shares)
    return Estimate(effect, low, high, len(true), "share of notes")


@claim("V06.phases", "head_effects")
def kinds_have_their_own_heads(evidence: Evidence) -> Outcome:
    """Fewer heads count at region decisions and at another kind than chance would have it."""
    effects = evidence.table("head_effects")
    every = len(effects[["layer", "head"]].drop_duplicates())
    parts, listed = [], []
    for row in overlaps(effects):
        sizes = int(str(row["n_first"])), int(str(row["n_second"]))
        if row["first"] != "region" or not all(sizes):
            continue
        shared = int(str(row["shared"]))
        name = f"heads shared by region and {row['second']} in the {row['segment']}, beyond chance"
        parts.append(Part(name, _beyond_chance(shared, *sizes, every), -1))
        expected = plain(sizes[0] * sizes[1] / every)
        listed.append(f"{shared} of {sizes[0]} and {sizes[1]} (by chance {expected})")
    if not parts:
        raise NotTested("no two kinds of decision have heads that exceed their nulls")
    return Outcome(
        tuple(parts),
        f"Shared: {'; '.join(listed)}. The interval is that of chance (hypergeometric), n counts "
        "heads.",
    )


def _beyond_chance(shared: int, first: int, second: int, every: int) -> Estimate:
    """Heads shared by two sets of all heads, less their mean if both were drawn; chance's interval.

    Without an interval where a set is empty.
    """
    if not first or not second:
        return Estimate(float("nan"), float("nan"), float("nan"), every, "heads")
    low, high = stats.hypergeom(every, first, second).ppf([0.025, 0.975])
    return Estimate(shared - first * second / every, shared - high, shared - low, every, "heads")


SOURCES = (
    ("region", "chosen_region", "the chosen region's candidates"),
    ("departure", "near_miss", "the near-miss named earlier"),
)
"""Kind of decision, and the place that its heads are said to attend to."""


@claim("V07", "event_attention")
def families_attend_to_their_source(evidence: Evidence) -> Outcome:
    """More than an even spread over the visible tokens, and more so than at other tokens.

    Mean over the heads that count at the kind of decision, one value a note. That the families are
    distinct is V06.phases.
    """
    rows = evidence.table("event_attention")
    rows = rows.assign(beyond=rows["mass"] - rows["uniform"])
    parts, masses, missing = [], [], []
    for kind, place, source in SOURCES:
        own = rows[(rows["kind"] == kind) & (rows["place"] == place)]
        if own.empty:
            missing.append(kind)
        for segment, read in own.groupby("segment", sort=False):
            each = read.groupby(["null", "example"])["beyond"].mean().unstack("null")
            where = f"heads of {kind} decisions in the {segment}, on {source}"
            less = {"less an even spread": each[""]}
            if "other_token" in each:
                less["less that at other tokens"] = each[""] - each["other_token"]
            for beyond, values in less.items():
                estimate = evidence.design.bootstrap.mean(values, "attention")
                parts.append(Part(f"{where}, {beyond}", estimate, +1))
            at = read[read["null"] == ""]
            mass, even = at.groupby("example")[["mass", "uniform"]].mean().mean()
            count = len(at[["layer", "head"]].drop_duplicates())
            masses.append(f"{kind}, {segment}: {plain(mass)} ({plain(even)}) of {count} heads")
    if not parts:
        raise NotTested("no head counts at region decisions or departures")
    note = f"Mass at the decisions (evenly spread): {'; '.join(masses)}."
    if missing:
        note += f" No head counts at decisions of the kind {', '.join(missing)}."
    holds = conjunction([part.verdict for part in parts]) is Verdict.HOLDS
    return Outcome(tuple(parts), note, Verdict.UNDECIDED if missing and holds else None)


@claim("V08", "elicitation_probe", "elicitation_sets")
def region_is_elicited_early(evidence: Evidence) -> Outcome:
    """Several tokens before, a probe reads the region; other heads count there, and read the note.

    The probe is that behind half of the layers, whatever the others find.
    """
    probe = at_middle(evidence.table("elicitation_probe"), evidence.design.layers)
    gains, sets = _by_offset(probe), _by_offset(evidence.table("elicitation_sets"))
    if SEVERAL not in gains or SEVERAL not in sets:
        raise NotTested(_too_late(gains, sets))
    gain, heads = gains[SEVERAL], sets[SEVERAL]
    every, notes = int(heads["n_heads"]), int(heads["notes"])
    eliciting, own, shared = (int(heads[name]) for name in ("eliciting", "own", "shared"))
    where = f"{SEVERAL} tokens before the decision"
    ends = (gain["gain_low"], gain["gain_high"], int(gain["notes"]))
    more = float(heads["note_mass"] - heads["uniform"])
    on_note = Estimate(more, heads["excess_low"], heads["excess_high"], notes, "attention")
    parts = (
        Part(
            f"accuracy of a probe of layer {gain['layer']} {where}, less its controls'",
            Estimate(gain["gain"], *ends, "accuracy"),
            +1,
        ),
        Part(
            "heads that count there and at the decision, beyond chance",
            _beyond_chance(shared, eliciting, own, every),
            -1,
        ),
        Part("attention of the heads that count there on the note, less its share", on_note, +1),
    )
    depths = f"{plain(heads['depth'], 2)} and {plain(heads['own_depth'], 2)}"
    return Outcome(
        parts,
        f"Heads that count {where}: {eliciting} of {every}; at it {own}; both {shared}. Mean depth "
        f"{depths} (0 the first layer, 1 the last).",
    )


def _by_offset(table: pd.DataFrame) -> dict[int, dict[Hashable, Any]]:
    return {int(row["offset"]): row for row in table.to_dict("records")}


def _too_late(
    gains: Mapping[int, Mapping[Hashable, Any]], sets: Mapping[int, Mapping[Hashable, Any]]
) -> str:
    """Why nothing was read `SEVERAL` tokens before, and what was found as early as it was read."""
    early = [offset for offset in gains if 0 < offset < SEVERAL and offset in sets]
    reason = f"no region decision was read {SEVERAL} tokens before it"
    if not early:
        return f"{reason}, nor any nearer, with probes and heads"
    gain, heads = gains[max(early)], sets[max(early)]
    return (
        f"{reason}: none has so many tokens of reasoning before it, behind the decision before, or "
        f"fewer were asked for; {max(early)} before, a probe of layer {gain['layer']} gains "
        f"{signed(gain['gain'], 2)} {interval(gain['gain_low'], gain['gain_high'], 2)} in accuracy "
        f"over its controls, and {int(heads['eliciting'])} of {int(heads['n_heads'])} heads count"
    )
