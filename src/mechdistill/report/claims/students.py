"""C17-C32, C43: what mechanistic distillation changes in the students."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mechdistill.report.claims.registry import Outcome, claim
from mechdistill.report.claims.scores import (
    difference,
    las_measured,
    score_grid,
    seeds_of,
    shared_notes,
    unit_of,
)
from mechdistill.report.evidence import Evidence, NotTested
from mechdistill.report.formats import count, percent, plain, signed
from mechdistill.report.metrics import BY_KEY, TABLE1, Metric
from mechdistill.report.verdicts import Estimate, Part, Verdict
from mechdistill.significance.plan import PLAIN, PROPOSED, TEACHER

F1 = "macro_f1_gold_present"
NO_SIMULATOR = "LAS needs a simulator model, which the study does not train"


@claim("C17", "comparisons", "scores")
def phases_complement(evidence: Evidence) -> Outcome:
    with_las = las_measured(evidence)
    metric, name = ("las", "LAS") if with_las else ("samples_f1", "samples-F1")
    parts = tuple(
        Part(f"{name}, mech minus {other}", difference(evidence, metric, PROPOSED, other), +1)
        for other in ("p1_only", "p2_only")
    )
    roles = [
        _read(evidence, metric, method, PLAIN)
        for method in ("p1_only", "p2_only")
        for metric in ("margin_region", "margin_within", "confusion")
    ]
    instead = "The paper shows this on LAS, which was not measured; samples-F1 stands in. "
    return Outcome(
        parts, f"{'' if with_las else instead}By phase: {'; '.join(filter(None, roles))}."
    )


def _read(evidence: Evidence, metric: str, method: str, reference: str) -> str:
    try:
        found = difference(evidence, metric, method, reference)
    except NotTested:
        return ""
    return (
        f"{metric}, {method} minus {reference} {signed(found.effect)} "
        f"[{signed(found.low)}, {signed(found.high)}]"
    )


@claim("C18", "comparisons", "corpus")
def vanilla_loses(evidence: Evidence) -> Outcome:
    parts, shares = [], []
    for metric in (F1, "samples_f1", "focus"):
        try:
            loss = difference(evidence, metric, PLAIN, TEACHER)
        except NotTested:
            continue
        parts.append(Part(f"{metric}, vanilla minus teacher", loss, -1))
        level = _level(evidence, metric, TEACHER)
        if level:
            shares.append(f"{metric} {percent(-100 * loss.effect / level)}")
    if not parts:
        raise NotTested("vanilla or the teacher was not evaluated")
    return Outcome(tuple(parts), f"Relative loss: {', '.join(shares) or 'not defined'}.")


def _level(evidence: Evidence, metric: str, method: str) -> float:
    corpus = evidence.tables.get("corpus")
    if corpus is None:
        return 0.0
    rows = corpus[(corpus["metric"] == metric) & (corpus["method"] == method)]
    return float(rows["value"].mean()) if len(rows) else 0.0


def _beats_every_baseline(evidence: Evidence, key: str) -> Outcome:
    metric = BY_KEY[key]
    if key == "las" and not las_measured(evidence):
        raise NotTested(NO_SIMULATOR)
    parts = tuple(
        Part(
            f"{metric.short}, mech minus {name}",
            difference(evidence, key, PROPOSED, name),
            metric.better,
        )
        for name in evidence.design.baselines
    )
    if not parts:
        raise NotTested("the study trains no baseline")
    found = f"{key}_found"
    again = [
        text
        for name in evidence.design.baselines
        if (text := _read(evidence, found, PROPOSED, name))
    ]
    return Outcome(parts, f"On heads found after training: {'; '.join(again)}." if again else "")


@claim("C19", "comparisons")
def mech_focus(evidence: Evidence) -> Outcome:
    return _beats_every_baseline(evidence, "focus")


@claim("C20", "comparisons")
def mech_confusion(evidence: Evidence) -> Outcome:
    return _beats_every_baseline(evidence, "confusion")


@claim("C21", "comparisons")
def mech_las(evidence: Evidence) -> Outcome:
    return _beats_every_baseline(evidence, "las")


@claim("C22", "comparisons")
def mech_f1(evidence: Evidence) -> Outcome:
    return _beats_every_baseline(evidence, F1)


@claim("C23", "scores")
def focus_and_confusion_gain_most(evidence: Evidence) -> Outcome:
    others = ["samples_f1", *(["las"] if las_measured(evidence) else [])]
    no_gap = _no_gap(evidence, ("focus", "confusion", *others))
    if no_gap is not None:
        return no_gap
    parts = tuple(
        Part(
            f"share of the gap gained, {metric} minus {unit_name}",
            _share_difference(evidence, metric, other),
            +1,
        )
        for other, unit_name in zip(others, ("samples-F1", "LAS"))
        for metric in ("focus", "confusion")
    )
    if len(others) > 1:
        return Outcome(parts, "Samples-F1 stands for F1.")
    against = any(part.verdict is Verdict.DOES_NOT_HOLD for part in parts)
    return Outcome(
        parts,
        f"Samples-F1 stands for F1. {NO_SIMULATOR}, so the claim can be refuted "
        "here and not confirmed.",
        Verdict.DOES_NOT_HOLD if against else Verdict.UNDECIDED,
    )


def _no_gap(evidence: Evidence, metrics: tuple[str, ...]) -> Outcome | None:
    """Undecided where the teacher is not shown to be better in some metric; None if it is."""
    gaps = {metric: _gap(evidence, metric) for metric in metrics}
    closed = [metric for metric, gap in gaps.items() if not gap.known() or gap.low <= 0]
    if not closed:
        return None
    return Outcome(
        (Part(f"{closed[0]}, teacher better than vanilla by", gaps[closed[0]], +1),),
        f"The teacher is not shown to be better than vanilla in {', '.join(closed)}, so no "
        "share of that gap can be gained.",
        Verdict.UNDECIDED,
    )


def _gap(evidence: Evidence, metric: str) -> Estimate:
    """How much better the teacher is than vanilla."""
    gap = difference(evidence, metric, PLAIN, TEACHER)
    return gap if BY_KEY[metric].better < 0 else -gap


def _share_difference(evidence: Evidence, one: str, other: str) -> Estimate:
    """Share of its gap that mech gains in one metric minus that in another, same resamples."""
    scores = evidence.table("scores")
    methods = (PROPOSED, PLAIN, TEACHER)
    shared = [set(shared_notes(scores, metric, methods)) for metric in (one, other)]
    notes = sorted(shared[0] & shared[1])
    seeds = seeds_of(scores, (one, other), methods)
    grids: list[np.ndarray] = []
    for metric in (one, other):
        mech, vanilla, teacher = (score_grid(scores, metric, m, notes, seeds) for m in methods)
        grids += [mech - vanilla, teacher - vanilla]
    return evidence.design.bootstrap.grids(
        grids, lambda m: 100 * (m[0] / m[1] - m[2] / m[3]), "percentage points of the gap"
    )


@claim("C24", "scores")
def baselines_imitate(evidence: Evidence) -> Outcome:
    if not las_measured(evidence):
        raise NotTested(NO_SIMULATOR)
    mechanism = ("sharp", "align", "loop", "help")
    no_gap = _no_gap(evidence, ("las", *mechanism))
    if no_gap is not None:
        return no_gap
    parts = tuple(
        Part(
            f"share of the gap that mech gains over vanilla, {BY_KEY[metric].short} minus LAS",
            _share_difference(evidence, metric, "las"),
            +1,
        )
        for metric in mechanism
    )
    return Outcome(parts, "The gap is that between vanilla and teacher.")


@claim("C25", "comparisons")
def mech_sharp(evidence: Evidence) -> Outcome:
    return _beats_every_baseline(evidence, "sharp")


@claim("C26", "comparisons")
def mech_align(evidence: Evidence) -> Outcome:
    return _beats_every_baseline(evidence, "align")


@claim("C27", "comparisons")
def mech_loop(evidence: Evidence) -> Outcome:
    return _beats_every_baseline(evidence, "loop")


@claim("C28", "comparisons")
def mech_help(evidence: Evidence) -> Outcome:
    return _beats_every_baseline(evidence, "help")


@claim("C29")
def smaller_on_mimic(evidence: Evidence) -> Outcome:
    raise NotTested("the study has one data set, of synthetic notes")


@claim("C30")
def other_backbones(evidence: Evidence) -> Outcome:
    raise NotTested("the study has one student architecture")


@claim("C31")
def larger_is_better(evidence: Evidence) -> Outcome:
    raise NotTested("the study has one student size")


@claim("C32", "comparisons")
def teacher_is_best(evidence: Evidence) -> Outcome:
    parts = []
    for metric in TABLE1:
        for method in evidence.design.methods:
            try:
                gap = difference(evidence, metric.key, method, TEACHER)
            except NotTested:
                continue
            parts.append(Part(f"{metric.short}, {method} minus teacher", gap, -metric.better))
    if not parts:
        raise NotTested("students and teacher were not scored alike")
    below = sum(part.verdict is Verdict.HOLDS for part in parts)
    above = [part.name for part in parts if part.verdict is Verdict.DOES_NOT_HOLD]
    return Outcome(
        tuple(parts),
        (
            f"{below} of {len(parts)} differences have their interval below the teacher; above it: "
            f"{', '.join(above) or 'none'}. Intervals are not corrected for their number."
        ),
    )


@claim("C43", "comparisons")
def all_gains_significant(evidence: Evidence) -> Outcome:
    frame = evidence.table("comparisons")
    keys = [metric.key for metric in TABLE1]
    cells = frame[
        (frame["method"] == PROPOSED)
        & frame["is_best_baseline"].astype(bool)
        & frame["metric"].isin(keys)
    ]
    if cells.empty:
        raise NotTested("mech was not compared with a best baseline")
    passed = cells[[_gain(row, BY_KEY[str(row["metric"])]) for _, row in cells.iterrows()]]
    weakest = _weakest(cells)
    metric = BY_KEY[str(weakest["metric"])]
    estimate = Estimate(
        float(weakest["difference"]),
        float(weakest["ci_low"]),
        float(weakest["ci_high"]),
        int(weakest["n_documents"]),
        unit_of(metric.key),
    )
    part = Part(
        f"the weakest cell: {metric.short}, mech minus {weakest['baseline']}",
        estimate,
        metric.better,
    )
    listed = ", ".join(BY_KEY[str(key)].short for key in passed["metric"]) or "none"
    return Outcome(
        (part,),
        (
            f"{count(len(passed), 'cell')} of {len(cells)}"
            f"{'' if las_measured(evidence) else ' (LAS was not measured)'} pass both tests "
            f"as a gain over the best baseline: {listed}. Wilcoxon does not apply to macro-F1, "
            "which a single note does not have. Weakest cell: Wilcoxon p "
            f"{plain(float(weakest['p_wilcoxon']))}."
        ),
        Verdict.HOLDS if len(passed) == len(cells) else Verdict.DOES_NOT_HOLD,
    )


def _gain(row: pd.Series, metric: Metric) -> bool:
    return str(row["mark"]) == ("up" if metric.better > 0 else "down")


def _weakest(cells: pd.DataFrame) -> pd.Series:
    """The cell whose interval reaches furthest to the wrong side, in units of its own width.

    A cell without an interval (the metric is undefined on all notes) is shown only if all are so.
    """
    known = cells[cells["ci_low"].notna()]
    cells = known if len(known) else cells
    better = cells["metric"].map(lambda key: BY_KEY[key].better).to_numpy(float)
    low = np.where(better > 0, cells["ci_low"], -cells["ci_high"])
    width = np.maximum((cells["ci_high"] - cells["ci_low"]).to_numpy(float), 1e-12)
    row: pd.Series = cells.iloc[int(np.argmin(low / width))]
    return row
