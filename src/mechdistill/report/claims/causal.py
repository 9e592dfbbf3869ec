"""C04-C07 and C13-C15: does patching the top heads restore or disrupt the reasoning?

The paper patches attention *patterns* and measures the generated reasoning; the row without a
suffix is that. The row `.outputs` reads the same claim on head outputs and the teacher-forced
decision margin, since patterns alone cannot bring back what corrupted values lack; `.written`
keeps the paper's site and reads what the generated reasoning decides, where Focus or Confusion
hardly move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mechdistill.report.claims.registry import Outcome, claim
from mechdistill.report.evidence import Evidence, NotTested
from mechdistill.report.formats import percent, plain
from mechdistill.report.patching import (
    PAPER_METRIC,
    TWIN,
    WRITTEN,
    bins_of,
    concentration,
    effects,
    gaps,
    mean_up_to,
    trend,
    under,
)
from mechdistill.report.resampling import Bootstrap
from mechdistill.report.verdicts import Part, Verdict

NEGLIGIBLE = 0.1
"""Share of the top heads' effect below which a control's counts as negligible (C06)."""
SATURATED = 0.9
"""Share of the gap beyond which a set of heads leaves no growth to be seen with more heads."""
NOTHING_MOVED = "no corruption moved its measure"
UNITS = {
    "focus": "cosine",
    "confusion": "cosine",
    "margin": "logits",
    "region_recall": "share of regions",
    "near_miss_rate": "share of near-misses",
}


@dataclass(frozen=True)
class Reading:
    """What is patched, how it is measured, and by which score the heads are ranked.

    `metrics` holds the metric of each phase; `score` is the suffix of an alternative ranking.
    """

    site: str
    table: str
    metrics: Mapping[int, str]
    score: str = ""

    def measure(self, phase: int) -> str:
        """The metric on which the phase is read."""
        return self.metrics[phase]

    def ranking(self, name: str) -> str:
        """The ranking's name in the tables."""
        return name + self.score


MARGIN = {1: "margin", 2: "margin"}
PRINTED = Reading("pattern", "generated", PAPER_METRIC)
WORDS = Reading("pattern", "generated", WRITTEN)
OUTPUTS = Reading("output", "margin", MARGIN)
BY_HELP = Reading("output", "margin", MARGIN, "_help")


def _sweep(evidence: Evidence, phase: int, direction: str, reading: Reading) -> Outcome:
    """The top heads have an effect, more than random heads, and it grows with their number."""
    site, metric = reading.site, reading.measure(phase)
    frame, boot = evidence.table(reading.table), evidence.design.bootstrap
    unit, ranking = UNITS[metric], reading.ranking("top")
    gap = boot.mean(gaps(frame, phase, site, direction, metric), unit)
    if not gap.known() or gap.low <= 0:
        return Outcome(
            (Part(f"clean minus corrupted {metric} on {TWIN[phase]}", gap, +1),),
            "The corruption did not move the measure, so no restoration is defined.",
            Verdict.UNDECIDED,
        )
    effect = effects(frame, phase, site, direction, metric)
    top = under(effect, ranking)
    bins = bins_of(effect, ranking)
    largest = boot.mean(top[bins[-1]], unit)
    growth = boot.mean(trend(effect, ranking), f"{unit} per doubling")
    listed = ", ".join(f"{k}: {percent(100 * float(top[k].mean()) / gap.effect)}" for k in bins)
    ceiling = ""
    if "all" in effect.columns.get_level_values("ranking"):
        whole = float(np.nanmean(under(effect, "all").to_numpy(float)))
        ceiling = f"; all heads: {percent(100 * whole / gap.effect)}"
    parts = [Part(f"{direction}, top {bins[-1]} heads, {site} site, {metric}", largest, +1)]
    note = (
        f"Share of the clean-corrupted gap ({plain(gap.effect)} {unit}) by number of heads: "
        f"{listed}{ceiling}."
    )
    first = float(top[bins[0]].mean()) / gap.effect
    if first < SATURATED:
        parts.append(Part("growth with the number of heads", growth, +1))
    else:
        note += f" The smallest set already moves {percent(100 * first)}: no growth is left to ask."
    beyond = _over_random(effect, reading, unit, evidence)
    if beyond is None:
        return Outcome(tuple(parts), f"{note} No random heads were patched beside them.")
    return Outcome((*parts, beyond), note)


def _over_random(
    effect: pd.DataFrame, reading: Reading, unit: str, evidence: Evidence
) -> Part | None:
    """Top minus random heads, mean over the bins of at most a quarter of the heads."""
    most = evidence.design.few_heads
    names = [reading.ranking(name) for name in ("top", "random")]
    if names[1] not in effect.columns.get_level_values("ranking"):
        return None
    top, rest = (mean_up_to(effect, name, most) for name in names)
    apart = evidence.design.bootstrap.mean(top - rest, unit)
    return Part(f"top minus random heads, at most {most}", apart, +1)


def _controls(evidence: Evidence, reading: Reading) -> Outcome:
    """Top beats count-matched random heads; random and lowest heads do next to nothing."""
    site, frame = reading.site, evidence.table(reading.table)
    boot, design = evidence.design.bootstrap, evidence.design
    parts: list[Part] = []
    skipped: list[str] = []
    for phase in (1, 2):
        metric = reading.measure(phase)
        for direction in ("denoise", "noise"):
            gap = boot.mean(gaps(frame, phase, site, direction, metric), UNITS[metric])
            if not gap.known() or gap.low <= 0:
                skipped.append(f"phase {phase} {direction}")
                continue
            effect = effects(frame, phase, site, direction, metric)
            where = f"phase {phase} {direction}"
            top = mean_up_to(effect, "top", design.few_heads)
            rest = mean_up_to(effect, "random", design.few_heads)
            parts.append(
                Part(f"{where}, top minus random", boot.mean(top - rest, UNITS[metric]), +1)
            )
            parts += [
                _negligible(
                    boot,
                    f"{where}, {name}",
                    top,
                    mean_up_to(effect, name, design.few_heads),
                    UNITS[metric],
                )
                for name in ("random", "lowest")
            ]
    if not parts:
        raise NotTested(NOTHING_MOVED)
    note = (
        f"Means over the bins of at most {design.few_heads} heads; a control counts as negligible "
        f"if its interval includes 0 or its mean is under {percent(100 * NEGLIGIBLE)} of the top's."
    )
    return _open_where_skipped(parts, note, skipped)


def _negligible(boot: Bootstrap, name: str, top: pd.Series, control: pd.Series, unit: str) -> Part:
    """Absence of a control effect larger than a tenth of the top heads' effect."""
    return Part(
        name,
        boot.mean(control, unit),
        +1,
        absent=True,
        negligible=max(0.0, NEGLIGIBLE * float(top.mean())),
    )


def _few_suffice(evidence: Evidence, reading: Reading) -> Outcome:
    """The smallest bin does more than its share of the largest bin's effect."""
    site, frame = reading.site, evidence.table(reading.table)
    boot = evidence.design.bootstrap
    parts: list[Part] = []
    skipped: list[str] = []
    for phase in (1, 2):
        metric = reading.measure(phase)
        for direction in ("denoise", "noise"):
            gap = boot.mean(gaps(frame, phase, site, direction, metric), UNITS[metric])
            if not gap.known() or gap.low <= 0:
                skipped.append(f"phase {phase} {direction}")
                continue
            effect = effects(frame, phase, site, direction, metric)
            few, many = bins_of(effect, "top")[0], bins_of(effect, "top")[-1]
            excess = boot.mean(concentration(effect, "top"), UNITS[metric])
            name = f"phase {phase} {direction}: top {few} minus {few}/{many} of top {many}"
            parts.append(Part(name, excess, +1))
    if not parts:
        raise NotTested(NOTHING_MOVED)
    return _open_where_skipped(parts, "", skipped)


def _open_where_skipped(parts: list[Part], note: str, skipped: list[str]) -> Outcome:
    """The parts' outcome; where a part could not be measured, only a failure is certain."""
    if not skipped:
        return Outcome(tuple(parts), note)
    note = f"{note} Left out, since the corruption moved nothing: {', '.join(skipped)}."
    refuted = any(part.verdict is Verdict.DOES_NOT_HOLD for part in parts)
    verdict = Verdict.DOES_NOT_HOLD if refuted else Verdict.UNDECIDED
    return Outcome(tuple(parts), note.strip(), verdict)


@claim("C04", "generated")
def denoising_restores_focus(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 1, "denoise", PRINTED)


@claim("C04.outputs", "margin")
def denoising_restores_region_margin(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 1, "denoise", OUTPUTS)


@claim("C04.written", "generated")
def denoising_restores_regions(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 1, "denoise", WORDS)


@claim("C05", "generated")
def noising_lowers_focus(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 1, "noise", PRINTED)


@claim("C05.outputs", "margin")
def noising_lowers_region_margin(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 1, "noise", OUTPUTS)


@claim("C05.written", "generated")
def noising_loses_regions(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 1, "noise", WORDS)


@claim("C06", "generated")
def controls_negligible(evidence: Evidence) -> Outcome:
    return _controls(evidence, PRINTED)


@claim("C06.outputs", "margin")
def output_controls_negligible(evidence: Evidence) -> Outcome:
    return _controls(evidence, OUTPUTS)


@claim("C07", "generated")
def few_heads_suffice(evidence: Evidence) -> Outcome:
    return _few_suffice(evidence, PRINTED)


@claim("C07.outputs", "margin")
def few_outputs_suffice(evidence: Evidence) -> Outcome:
    return _few_suffice(evidence, OUTPUTS)


@claim("C13", "generated")
def denoising_lowers_confusion(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 2, "denoise", PRINTED)


@claim("C13.outputs", "margin")
def denoising_restores_within_margin(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 2, "denoise", OUTPUTS)


@claim("C13.help", "margin")
def denoising_help_heads_restores_within_margin(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 2, "denoise", BY_HELP)


@claim("C13.written", "generated")
def denoising_rules_near_misses_out(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 2, "denoise", WORDS)


@claim("C14", "generated")
def noising_raises_confusion(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 2, "noise", PRINTED)


@claim("C14.outputs", "margin")
def noising_lowers_within_margin(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 2, "noise", OUTPUTS)


@claim("C14.help", "margin")
def noising_help_heads_lowers_within_margin(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 2, "noise", BY_HELP)


@claim("C14.written", "generated")
def noising_keeps_near_misses(evidence: Evidence) -> Outcome:
    return _sweep(evidence, 2, "noise", WORDS)


@claim("C15", "manipulation")
def corruption_steers(evidence: Evidence) -> Outcome:
    frame, boot = evidence.table("manipulation"), evidence.design.bootstrap
    chosen = frame[frame["twin"] == "K2"]
    units = {"confusion": "cosine", "near_miss_rate": "share of notes"}
    parts = []
    for metric, unit in units.items():
        rows = chosen[chosen["metric"] == metric]
        if rows.empty:
            continue
        moved = (rows["corrupted"] - rows["clean"]).groupby(rows["example"]).mean()
        parts.append(Part(f"{metric}, corrupted minus clean", boot.mean(moved, unit), +1))
    if not parts:
        raise NotTested("the corrupted runs were not measured by Confusion")
    return Outcome(tuple(parts), _missing(parts, units))


def _missing(parts: list[Part], wanted: dict[str, str]) -> str:
    absent = [name for name in wanted if not any(p.name.startswith(name) for p in parts)]
    return f"Not measured: {', '.join(absent)}." if absent else ""
