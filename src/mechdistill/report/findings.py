"""The ten lines that a run ends with: what was found, each with its numbers.

One function a line. A line whose table is missing says so; nothing is left out because it is
negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mechdistill.report.claims.scores import difference
from mechdistill.report.evidence import Evidence, NotTested
from mechdistill.report.formats import count, percent, plain, signed
from mechdistill.report.metrics import BY_KEY
from mechdistill.report.patching import PAPER_METRIC, TWIN, WRITTEN
from mechdistill.report.rankings import NAMES, PRIMARY, name, ranked_heads, top_size
from mechdistill.report.verdicts import MANY, Estimate, Verdict
from mechdistill.significance.plan import PLAIN, PROPOSED, TEACHER

DECISIONS = {1: "region", 2: "within-region"}


@dataclass(frozen=True)
class Story:
    """What the lines are written from: the tables, the judged claims, and what the notes are.

    `candidates` says how many labels a note lists.
    """

    evidence: Evidence
    claims: pd.DataFrame
    notes: str
    candidates: str


def findings(story: Story) -> list[str]:
    """Ten sentences, in the order of the stages."""
    lines: tuple[Callable[[Story], str], ...] = (
        _study,
        _teacher,
        lambda s: _heads(s, 1),
        lambda s: _heads(s, 2),
        _patterns,
        _predictors,
        _depth,
        _students,
        _phases,
        _claims,
    )
    return [_or_why_not(line, story) for line in lines]


def _or_why_not(line: Callable[[Story], str], story: Story) -> str:
    try:
        return line(story)
    except NotTested as reason:
        return f"Not tested: {reason}."


def _study(story: Story) -> str:
    design = story.evidence.design
    notes = story.evidence.table("predictions")["example"].nunique()
    return (
        f"Study {design.study}: {story.notes}; {story.candidates}; a teacher of "
        f"{design.all_heads} heads, {count(len(design.methods), 'student method')} x "
        f"{count(len(design.seeds), 'seed')}, {count(notes, 'test note')}."
    )


def _teacher(story: Story) -> str:
    corpus = story.evidence.table("corpus")
    own = corpus[corpus["method"] == TEACHER].set_index("metric")["value"]
    if "micro_f1" not in own:
        raise NotTested("the teacher was not evaluated")
    predictions = story.evidence.table("predictions")
    traces = predictions[predictions["method"] == TEACHER]
    bad = int((traces["status"] != "ok").sum())
    return (
        f"Teacher: micro-F1 {plain(float(own['micro_f1']))} on test notes, exact set in "
        f"{percent(100 * float(own.get('exact_match', float('nan'))))}; {bad} of {len(traces)} "
        "traces did not parse."
    )


def _heads(story: Story, phase: int) -> str:
    """Head outputs, teacher-forced margin, the bin nearest to the pool's size."""
    rows = _summary(story, phase, "output", "margin")
    size = _size(rows, story.evidence.design.pool_size)
    parts = []
    for direction, word in (("denoise", "restore"), ("noise", "disrupt")):
        chosen = rows[(rows["direction"] == direction) & rows["bin"].isin([size])]
        shares = {r["ranking"]: r for r in _records(chosen)}
        if "top" not in shares:
            raise NotTested(f"top heads of phase {phase} were not patched")
        top = shares["top"]
        ends = f"[{percent(top['pct_gap_low'])}, {percent(top['pct_gap_high'])}]"
        others = ", ".join(
            f"{label} {percent(shares[key]['pct_gap'])}"
            for key, label in (
                ("random", "random"),
                ("depth_matched", "depth-matched"),
                ("lowest", "lowest"),
            )
            if key in shares
        )
        parts.append(f"{word} {percent(top['pct_gap'])} {ends} ({others})")
    line = (
        f"Phase {phase} ({story.candidates}): outputs of the top {size} heads by {NAMES[phase]} "
        f"{' and '.join(parts)} of the {DECISIONS[phase]} margin"
    )
    others = _by_other_scores(rows[(rows["direction"] == "denoise") & (rows["bin"] == size)])
    return f"{line}; restored by as many heads ranked {others}." if others else f"{line}."


def _by_other_scores(rows: pd.DataFrame) -> str:
    """`by cosine 40 %, by help 91 %`: the alternative rankings that were patched."""
    parts = [
        f"by {row['ranking'].removeprefix('top_')} {percent(row['pct_gap'])}"
        for row in _records(rows[rows["ranking"].str.startswith("top_")].sort_values("ranking"))
    ]
    return ", ".join(parts)


def _patterns(story: Story) -> str:
    """The ceiling of each site: all heads of the model, on the generated reasoning."""
    texts = []
    for phase in (1, 2):
        for metric in (PAPER_METRIC[phase], WRITTEN[phase]):
            found = [_all_heads(story, phase, site, metric) for site in ("pattern", "output")]
            pattern, output = found
            if pattern is None or output is None:
                continue
            moved = f"{percent(pattern['pct_gap'])} / {percent(output['pct_gap'])}"
            if pattern["no_percentage"]:
                moved = f"({TWIN[phase]} {pattern['no_percentage']})"
            texts.append(f"{_READ[metric]} {moved}")
    if not texts:
        raise NotTested("all heads together were not patched")
    return f"All heads, denoised by patterns / by outputs, restore: {'; '.join(texts)}."


_READ = {
    "focus": "Focus",
    "confusion": "Confusion",
    "region_recall": "regions named",
    "near_miss_rate": "near-misses kept",
}


def _all_heads(story: Story, phase: int, site: str, metric: str) -> dict[str, Any] | None:
    try:
        rows = _summary(story, phase, site, metric)
    except NotTested:
        return None
    whole = rows[(rows["ranking"] == "all") & (rows["direction"] == "denoise")]
    return _records(whole)[0] if len(whole) else None


def _predictors(story: Story) -> str:
    """Which score variant goes with the causal effect of single heads (head outputs)."""
    table = causal_ranking(story.evidence.table("causal_agreement"))
    parts = []
    for phase in (1, 2):
        own = table[table["phase"] == phase]
        if own.empty:
            raise NotTested(f"single heads of phase {phase} were not patched")
        key = PRIMARY[phase]
        printed = own[
            (own["score"] == key[0]) & (own["anchor"] == key[1]) & (own["sinks"] == key[2])
        ]
        best = own.iloc[0]
        parts.append(f"phase {phase} {variant(best)} {_agreement(best)}")
        if len(printed):
            parts[-1] += f", {NAMES[phase]} {_agreement(printed.iloc[0])}"
    return (
        "Score against single-head effects, rank correlation (share of the largest effects that "
        f"its first heads hold): {'; '.join(parts)}."
    )


def _agreement(row: pd.Series) -> str:
    return f"{plain(float(row['spearman']), 2)} ({percent(100 * float(row['captured']))})"


def causal_ranking(agreement: pd.DataFrame) -> pd.DataFrame:
    """Score variants by rank correlation with single-head effects, best first within a phase.

    Effects of head outputs on the phase's own decision and corruption, mean of both directions.
    """
    own = agreement[
        (agreement["site"] == "output")
        & (agreement["direction"] == "mean")
        & (agreement["metric"] == "margin")
        & (agreement["twin"] == agreement["phase"].map(TWIN))
    ].copy()
    keys = ["anchor", "sinks"]
    own[keys] = own[keys].fillna("")
    return own.sort_values(
        ["phase", "spearman", "score", "anchor", "sinks"],
        ascending=[True, False, True, True, True],
        ignore_index=True,
    )


def variant(row: Any) -> str:
    """`coarse (anchor unembed, sinks out)`."""
    options = [f"anchor {row['anchor']}"] if row["anchor"] else []
    options += [f"sinks {row['sinks']}"] if row["sinks"] else []
    return f"{row['score']} ({', '.join(options)})" if options else str(row["score"])


def _depth(story: Story) -> str:
    rankings, design = story.evidence.table("rankings"), story.evidence.design
    parts = []
    for phase in (1, 2):
        heads = ranked_heads(rankings, phase)
        size = top_size(len(heads))
        layers = pd.Series([layer for layer, _ in heads[:size]])
        best = ", ".join(name(head) for head in heads[:3])
        parts.append(f"{NAMES[phase]} {layers.median():g} (best: {best})")
    verdicts = _verdicts(story)
    return (
        f"Depth, median layer of the top {size} (0 to {design.layers - 1}): {', '.join(parts)}; "
        f"'coarse heads early' {verdicts['C02']}, 'refine later than coarse' {verdicts['C09']}."
    )


def _students(story: Story) -> str:
    comparisons = story.evidence.table("comparisons")
    best = comparisons.loc[
        (comparisons["method"] == PROPOSED) & comparisons["is_best_baseline"].astype(bool),
        "baseline",
    ]
    if best.empty:
        raise NotTested("mech was not compared with a baseline")
    reference = str(best.iloc[0])
    gains = {
        key: difference(story.evidence, key, PROPOSED, reference)
        for key in ("focus", "confusion", "macro_f1_gold_present", "micro_f1")
    }
    parts = [f"{BY_KEY[key].short} {_with_interval(gain)}" for key, gain in gains.items()]
    line = f"Mech minus {reference} (best baseline on validation): {'; '.join(parts)}."
    return f"{line}{_left_out(story)}"


def _left_out(story: Story) -> str:
    """In how many seeds mech had to go without a phase, since no head qualified for its pool."""
    own = [budget for (method, _), budget in story.evidence.budgets.items() if method == PROPOSED]
    reasons = [str(reason) for budget in own for reason in budget.get("left_out", [])]
    listed = ", ".join(
        f"{reason} in {reasons.count(reason)} of {len(own)} seeds"
        for reason in dict.fromkeys(reasons)
    )
    return f" Mech trained without: {listed}." if listed else ""


def _phases(story: Story) -> str:
    of_one = [m for m in story.evidence.design.methods if m in ("p1_only", "p2_only")]
    parts = []
    for method in of_one or [PROPOSED]:
        read = [
            f"{label} {_with_interval(difference(story.evidence, key, method, PLAIN))}"
            for key, label in (("margin_region", "region"), ("margin_within", "within-region"))
        ]
        parts.append(f"{method} {', '.join(read)}")
    return f"Margins in logits against vanilla: {'; '.join(parts)}."


def _claims(story: Story) -> str:
    counts = dict.fromkeys(Verdict, 0)
    for label in _verdicts(story).values():
        kind = next(v for v in sorted(Verdict, key=len, reverse=True) if label.startswith(v))
        counts[kind] += 1
    listed = ", ".join(f"{n} {MANY[verdict]}" for verdict, n in counts.items())
    return f"Of {sum(counts.values())} claims: {listed}."


def _verdicts(story: Story) -> dict[str, str]:
    """Verdict of each claim C01 to C46, variants and our own checks left out."""
    rows = story.claims[story.claims["id"].str.fullmatch(r"C\d\d")]
    return dict(zip(rows["id"], rows["verdict"], strict=True))


def _summary(story: Story, phase: int, site: str, metric: str) -> pd.DataFrame:
    frame = story.evidence.table("patching_summary")
    rows = frame[
        (frame["phase"] == phase)
        & (frame["twin"] == TWIN[phase])
        & (frame["site"] == site)
        & (frame["metric"] == metric)
    ]
    if rows.empty:
        raise NotTested(f"phase {phase} was not patched at the {site} site and read by {metric}")
    return rows


def _size(rows: pd.DataFrame, wanted: int) -> int:
    bins = sorted(int(k) for k in rows.loc[rows["ranking"] == "top", "bin"].unique())
    if not bins:
        raise NotTested("top heads were not patched")
    return min(bins, key=lambda k: (abs(k - wanted), k))


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return rows.to_dict("records")  # type: ignore[return-value]


def _with_interval(found: Estimate) -> str:
    if not found.known():
        return "undefined"
    return f"{signed(found.effect)} [{signed(found.low)}, {signed(found.high)}]"
