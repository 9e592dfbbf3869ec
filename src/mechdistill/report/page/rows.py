"""Rows of the page's smaller tables, numbers already in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from mechdistill.report.budgets import AMOUNTS, Budgets, out_of_line, ratios
from mechdistill.report.findings import causal_ranking, variant
from mechdistill.report.formats import MISSING, interval, percent, plain, signed
from mechdistill.report.metrics import method_name
from mechdistill.report.patching import PAPER_METRIC, TWIN, WRITTEN
from mechdistill.report.rankings import PRIMARY, name
from mechdistill.report.resampling import Bootstrap
from mechdistill.report.verdicts import Verdict

RANKINGS = {
    "top": "Top",
    "random": "Random",
    "depth_matched": "Random, same layers",
    "lowest": "Lowest",
    "all": "All heads",
}
MEASURES = {
    "margin": "margin",
    "focus": "Focus",
    "confusion": "Confusion",
    "region_recall": "regions named",
    "near_miss_rate": "near-misses kept",
}
SITES = {
    "output": "outputs",
    "pattern": "patterns",
    "pattern_prompt": "patterns, at all prompt positions too",
}
SHOWN = 8
"""Score variants of a phase listed, besides the printed score and plain attention."""

NAMED = 4
"""Heads of a kind of decision that are named."""

Row = dict[str, Any]


def patching_rows(summary: pd.DataFrame, pool_size: int) -> list[Row]:
    """Each phase, measure, site and direction at the bin nearest to the pool's size."""
    rows: list[Row] = []
    for phase, metric in [(p, m) for p in (1, 2) for m in ("margin", PAPER_METRIC[p], WRITTEN[p])]:
        own = summary[
            (summary["phase"] == phase)
            & (summary["twin"] == TWIN[phase])
            & (summary["metric"] == metric)
        ]
        bins = sorted(int(k) for k in own.loc[own["ranking"] == "top", "bin"].unique())
        if not bins:
            continue
        size = min(bins, key=lambda k: (abs(k - pool_size), k))
        for site in SITES:
            for direction in ("denoise", "noise"):
                chosen = own[(own["site"] == site) & (own["direction"] == direction)]
                chosen = chosen[(chosen["bin"] == size) | (chosen["ranking"] == "all")]
                if len(chosen):
                    rows.append(_patching_row(chosen, phase, metric, site, direction, size))
    return rows


def _patching_row(
    rows: pd.DataFrame, phase: int, metric: str, site: str, direction: str, size: int
) -> Row:
    by_ranking = {row["ranking"]: row for row in rows.to_dict("records")}
    first = next(iter(by_ranking.values()))
    top = by_ranking.get("top", {})
    over = {"text": MISSING, "below": ""}
    if "top_minus_random" in top and pd.notna(top["top_minus_random"]):
        ends = interval(top["top_minus_random_low"], top["top_minus_random_high"])
        over = {"text": signed(top["top_minus_random"]), "below": ends}
    return {
        "phase": f"{phase}, {TWIN[phase]}",
        "measure": MEASURES[metric],
        "site": SITES[site],
        "direction": direction,
        "bin": size,
        "levels": f"{plain(first['clean'])} / {plain(first['corrupted'])}",
        "no_percentage": first["no_percentage"] and f"{TWIN[phase]} {first['no_percentage']}",
        "shares": [_share(by_ranking.get(ranking)) for ranking in RANKINGS],
        "over_random": over,
        "notes": f"{first['n']} ({first['n_dropped']})",
        "elsewhere": int(rows["n_donor_window"].max()),
    }


def _share(row: Mapping[Any, Any] | None) -> dict[str, str]:
    if row is None or pd.isna(row["pct_gap"]):
        return {"text": MISSING, "below": ""}
    ends = _percents(row["pct_gap_low"] / 100, row["pct_gap_high"] / 100)
    return {"text": percent(row["pct_gap"]), "below": ends}


def _percents(low: float, high: float) -> str:
    """`[43, 53]` from fractions."""
    ends = (percent(100 * end).removesuffix(" %") for end in (low, high))
    return f"[{', '.join(ends)}]"


def agreement_rows(agreement: pd.DataFrame) -> list[Row]:
    """Score variants by rank correlation with single-head effects (see `causal_ranking`)."""
    rows = []
    for phase, own in causal_ranking(agreement).groupby("phase"):
        key = PRIMARY[int(str(phase))]
        for place, row in enumerate(own.to_dict("records")):
            printed = (row["score"], row["anchor"], row["sinks"]) == key
            attention = row["score"] in ("attention_cue", "attention_evidence")
            if place < SHOWN or printed or attention:
                rows.append(
                    {
                        "phase": phase,
                        "name": variant(row),
                        "printed": printed,
                        "spearman": plain(row["spearman"], 2),
                        "spearman_ends": interval(row["ci_low"], row["ci_high"], 2),
                        "captured": percent(100 * row["captured"]),
                        "captured_ends": _percents(row["captured_low"], row["captured_high"]),
                    }
                )
    return rows


def manipulation_rows(frame: pd.DataFrame, boot: Bootstrap) -> list[Row]:
    """Clean, corrupted and their difference by twin, phase and measure."""
    rows = []
    for (twin, phase, metric), own in frame.groupby(["twin", "phase", "metric"]):
        means = own.groupby("example")[["clean", "corrupted"]].mean().dropna()
        moved = boot.mean(means["corrupted"] - means["clean"], "")
        rows.append(
            {
                "twin": twin,
                "phase": phase,
                "metric": metric,
                "clean": plain(float(means["clean"].mean())),
                "corrupted": plain(float(means["corrupted"].mean())),
                "moved": f"{signed(moved.effect)} {interval(moved.low, moved.high)}",
                "n": moved.n,
            }
        )
    return rows


def status_rows(predictions: pd.DataFrame) -> list[Row]:
    """How many traces of each method parsed, and why the others did not."""
    rows = []
    for method in predictions["method"].drop_duplicates():
        counts = predictions.loc[predictions["method"] == method, "status"].value_counts()
        others = counts.drop("ok", errors="ignore").sort_index()
        listed = ", ".join(f"{reason}: {n}" for reason, n in others.items())
        rows.append(
            {
                "method": method_name(str(method)),
                "traces": int(counts.sum()),
                "ok": int(counts.get("ok", 0)),
                "others": listed or "none",
            }
        )
    return rows


def decision_rows(counts: pd.DataFrame) -> list[Row]:
    """Decision events of the teacher that were found (see `mechdistill.report.decisions`)."""
    rows: list[Row] = counts.to_dict("records")  # type: ignore[assignment]
    return [
        {**row, "foils": plain(row["foils"], 1), "margin": plain(row["margin"])} for row in rows
    ]


def head_effect_rows(effects: pd.DataFrame, agreement: pd.DataFrame) -> list[Row]:
    """By kind of decision: heads beyond their nulls, and how attribution ranks all of them."""
    rows = []
    for (kind, segment), own in effects.groupby(["kind", "segment"], sort=False):
        beyond = own[own["above_null"].astype(bool)].sort_values("excess", ascending=False)
        first = own.iloc[0]
        ranks = agreement[(agreement["kind"] == kind) & (agreement["segment"] == segment)].iloc[0]
        named = [
            f"{name((int(row['layer']), int(row['head'])))} {signed(row['excess'], 2)}"
            for row in beyond.head(NAMED).to_dict("records")
        ]
        deep = (beyond["layer"] + 1).mean() / (int(own["layer"].max()) + 1)
        rows.append(
            {
                **{"kind": kind, "segment": segment, "notes": first["n"]},
                **{"decisions": first["decisions"], "margin": plain(first["margin"], 2)},
                **{"beyond": len(beyond), "heads": len(own), "named": ", ".join(named) or MISSING},
                "depth": plain(deep, 2),
                "spearman": plain(ranks["spearman"], 2),
                "spearman_ends": interval(ranks["ci_low"], ranks["ci_high"], 2),
                "captured": percent(100 * ranks["captured"]),
                "captured_ends": _percents(ranks["captured_low"], ranks["captured_high"]),
            }
        )
    return rows


def set_rows(shares: pd.DataFrame) -> list[Row]:
    """By kind of decision and number of heads: the first heads ablated, and kept alone."""
    rows: list[Row] = []
    for (kind, segment, size), own in shares.groupby(["kind", "segment", "bin"], sort=False):
        cells: Row = {"kind": kind, "segment": segment, "bin": size, "n": own["n"].iloc[0]}
        for mode in ("ablated", "kept"):
            for ranking in ("top", "random"):
                chosen = own[(own["mode"] == mode) & (own["ranking"] == ranking)]
                row = next(iter(chosen.to_dict("records")), None)
                cells[f"{mode}_{ranking}"] = MISSING if row is None else percent(100 * row["share"])
                if ranking == "top" and row is not None:
                    cells[f"{mode}_ends"] = _percents(row["ci_low"], row["ci_high"])
                    cells[f"{mode}_notes"] = percent(100 * row["notes"])
        rows.append(cells)
    return rows


def overlap_row(overlap: Mapping[str, Any]) -> Row:
    """Heads that count at two kinds of decision."""
    chance, p = plain(overlap["expected"], 1), plain(overlap["p"], 2)
    return {**overlap, "expected": chance, "p": p}


def budget_rows(budgets: Budgets) -> list[Row]:
    """What each method's training used, seeds averaged; times are left to a table of their own."""
    rows = []
    for method in dict.fromkeys(method for method, _ in budgets):
        own = {seed: budget for (name, seed), budget in budgets.items() if name == method}
        row: Row = {"method": method_name(method), "seeds": len(own)}
        for key in AMOUNTS:
            known = [budget[key] for budget in own.values() if key in budget]
            row[key] = f"{sum(known) / len(known):,.0f}" if known else MISSING
        flags = [out_of_line(ratios(budgets, method, seed)) for seed in own]
        row["out_of_line"] = "; ".join(dict.fromkeys(flag for of_seed in flags for flag in of_seed))
        left = sorted({str(part) for budget in own.values() for part in budget.get("left_out", [])})
        row["left_out"] = ", ".join(left) or "none"
        rows.append(row)
    return rows


def claim_rows(claims: pd.DataFrame) -> list[Row]:
    """Claims with their numbers in words and a name for the verdict's colour."""
    rows: list[Row] = []
    records: list[Row] = claims.to_dict("records")  # type: ignore[assignment]
    for claim in records:
        kind = str(claim["verdict"]).split(" (")[0]
        numbers = ""
        if pd.notna(claim["effect"]):
            ends = interval(float(claim["ci_low"]), float(claim["ci_high"]))
            numbers = f"{signed(float(claim['effect']))} {ends}"
        tested = kind != Verdict.NOT_TESTED
        rows.append({**claim, "css": kind.replace(" ", "-"), "numbers": numbers, "tested": tested})
    return rows


def undefined_line(measures: pd.DataFrame) -> str:
    """Where Confusion has no value, by method; "" if that was not measured."""
    own = measures[(measures["metric"] == "confusion") & measures["value"].notna()]
    if own.empty:
        return ""
    listed = "; ".join(
        f"{method_name(row['method'])} {int(row['n_undefined'])} of "
        f"{int(row['n_documents'] * row['n_seeds'])}"
        for row in own.to_dict("records")
    )
    return (
        "Confusion is read at refinement positions: those of clauses that set a gold code of the "
        "note against another code, so the gold labels of the test notes choose them. Reasoning "
        "without such a clause has no Confusion and is left out of its mean (pairs of note and "
        f"seed): {listed}."
    )


def definition_lines(definitions: Mapping[str, Any]) -> Sequence[str]:
    """What the scores of this run were computed with."""
    lines = [
        "Intervals: 95 %, percentile bootstrap (rank correlations of scores or estimates with "
        "effects: jackknife over notes). Tests: Wilcoxon signed rank on notes (seeds "
        "averaged) and paired bootstrap over notes and seeds; Holm's correction stands in "
        "table1.csv and measures.csv.",
        "Layers and heads are counted from 0. Query position: the one whose logits predict the "
        "token. RefineScore and CoarseScore are the printed products; every factor and variant is "
        "in head_scores.parquet.",
    ]
    if "text_encoder" in definitions:
        encoder = definitions["text_encoder"]
        lines.append(f"Text encoder of Focus and Confusion: {encoder['name']}, frozen.")
    if "bleu" in definitions:
        lines.append(f"BLEU: {definitions['bleu']}.")
    if "labels_in_macro_f1" in definitions:
        sizes = definitions["labels_in_macro_f1"]
        listed = ", ".join(f"{name} {n}" for name, n in sizes.items())
        lines.append(f"Labels in each macro-F1: {listed}. F1 in Table 1 is gold_present.")
    if "labels_by_training_frequency" in definitions:
        groups = definitions["labels_by_training_frequency"]
        listed = "; ".join(
            f"{name} {group['labels']} labels of {group['least_training_notes']} to "
            f"{group['most_training_notes']} training notes, {group['gold_in_test']} of them gold "
            "in the test notes"
            for name, group in groups.items()
        )
        lines.append(f"Labels by training frequency, thirds of their order: {listed}.")
    if "answers_outside_label_space" in definitions:
        outside = sum(definitions["answers_outside_label_space"].values())
        lines.append(f"Answers outside the label space, dropped before scoring: {outside}.")
    return lines


def tokenizer_lines(distil: Mapping[str, Any]) -> Sequence[str]:
    """What students whose tokenizer is not the teacher's cannot be compared in."""
    own = distil["student_tokenizer"]
    if own is None:
        return []
    return [
        f"The students have a tokenizer of their own ({own['model']}, {own['vocabulary']} tokens "
        "at most). What counts tokens is in each model's own and cannot be compared between "
        "teacher and students: perplexity is that of a token, the early window of a model's own "
        "reasoning (Focus, Confusion, their curves) is as many tokens but not as much text, "
        "margins are those of the first token that parts two labels, and rows have a kurtosis "
        "over more keys.",
    ]
