"""Small tables with known truth, in the shape that the stages write."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from mechdistill.report.evidence import Design, Evidence
from mechdistill.report.resampling import Bootstrap

NOTES = [f"test-{i:05d}" for i in range(24)]
METHODS = ("vanilla", "vanilla_positions", "mech", "p1_only", "p2_only")


@dataclass(frozen=True)
class Builder:
    """Makes evidence table by table; every maker takes the truth that it plants."""

    design: Design

    def evidence(self, **tables: pd.DataFrame) -> Evidence:
        return Evidence(self.design, tables)

    def with_methods(self, *methods: str) -> Builder:
        return Builder(replace(self.design, methods=methods))

    def scores(
        self, means: dict[tuple[str, str], float], seeds: int = 3, noise: float = 0.02
    ) -> pd.DataFrame:
        """(method, metric) -> mean; note effects are shared, so that pairs are correlated."""
        rng = np.random.default_rng(1)
        rows = []
        for (method, metric), mean in means.items():
            for seed in range(1 if method == "teacher" else seeds):
                shared = np.random.default_rng(2).normal(0, 0.05, len(NOTES))
                values = mean + shared + rng.normal(0, noise, len(NOTES))
                model = "teacher" if method == "teacher" else f"{method}-seed{seed}"
                rows += [
                    (model, method, seed, note, metric, value)
                    for note, value in zip(NOTES, values, strict=True)
                ]
        return pd.DataFrame(rows, columns=["model", "method", "seed", "example", "metric", "value"])

    def curves(
        self,
        shapes: dict[tuple[str, str], Callable[[np.ndarray], np.ndarray]],
        noise: float = 0.01,
    ) -> pd.DataFrame:
        """(method, metric) -> curve over t."""
        rng = np.random.default_rng(3)
        t = np.linspace(0, 1, 11)
        rows = []
        for (method, metric), shape in shapes.items():
            for seed in range(1 if method == "teacher" else 2):
                for note, kind in itertools.product(NOTES[:10], ("cumulative", "windowed")):
                    values = shape(t) + rng.normal(0, noise, len(t))
                    rows += [
                        (method, method, seed, note, kind, metric, x, y)
                        for x, y in zip(t, values, strict=True)
                    ]
        return pd.DataFrame(
            rows, columns=["model", "method", "seed", "example", "kind", "metric", "t", "value"]
        )

    def patched(
        self,
        per_head: dict[str, float],
        *,
        metric: str,
        phase: int,
        site: str,
        gap: float = 1.0,
        concave: bool = True,
        twin: str | None = None,
        noise: float = 0.02,
    ) -> pd.DataFrame:
        """ranking -> share of the gap moved by the largest bin; both directions.

        `concave`: the share grows with the logarithm of the number of heads, else with the number.
        """
        rng = np.random.default_rng(5)
        better = -1 if metric in ("confusion", "near_miss_rate") else 1
        clean, corrupted = 0.5 + better * gap / 2, 0.5 - better * gap / 2
        rows = []
        bins = self.design.bins
        for ranking, share in per_head.items():
            sizes = (self.design.all_heads,) if ranking == "all" else bins
            draws = 3 if ranking in ("random", "depth_matched") else 1
            for k, draw, direction, note in itertools.product(
                sizes, range(draws), ("denoise", "noise"), NOTES
            ):
                grown = k / bins[-1] if not concave else np.log2(2 * k) / np.log2(2 * bins[-1])
                moved = share * min(grown, 1.0) + rng.normal(0, noise)
                start, end = (corrupted, clean) if direction == "denoise" else (clean, corrupted)
                patched = start + moved * (end - start)
                rows.append(
                    (
                        phase,
                        twin or {1: "K1", 2: "K2"}[phase],
                        site,
                        direction,
                        ranking,
                        k,
                        draw,
                        note,
                        metric,
                        clean,
                        corrupted,
                        patched,
                    )
                )
        return pd.DataFrame(
            rows,
            columns=[
                "phase",
                "twin",
                "site",
                "direction",
                "ranking",
                "bin",
                "draw",
                "example",
                "metric",
                "clean",
                "corrupted",
                "patched",
            ],
        )

    def rankings(self, orders: dict[int, list[tuple[int, int]]]) -> pd.DataFrame:
        """phase -> heads from rank 1 down, under the primary score."""
        rows = [
            (
                "teacher",
                phase,
                *{1: ("coarse", "unembed", "out"), 2: ("refine", "", "")}[phase],
                rank,
                layer,
                head,
            )
            for phase, heads in orders.items()
            for rank, (layer, head) in enumerate(heads, start=1)
        ]
        return pd.DataFrame(
            rows, columns=["model", "phase", "score", "anchor", "sinks", "rank", "layer", "head"]
        )

    def comparisons(
        self, rows: list[tuple[str, str, str, float, float, float, str]], best: str = "vanilla"
    ) -> pd.DataFrame:
        """(metric, method, baseline, difference, low, high, mark)."""
        return pd.DataFrame(
            [
                {
                    "metric": metric,
                    "method": method,
                    "baseline": baseline,
                    "is_best_baseline": baseline == best,
                    "difference": difference,
                    "ci_low": low,
                    "ci_high": high,
                    "p_wilcoxon": 0.01 if mark else 0.4,
                    "p_holm": 0.02 if mark else 1.0,
                    "n_documents": 100,
                    "n_seeds": 3,
                    "mark": mark,
                    "detectable": high - low,
                    "reference_value": 0.5,
                    "method_value": 0.5 + difference,
                }
                for metric, method, baseline, difference, low, high, mark in rows
            ]
        )


@pytest.fixture(scope="session")
def build() -> Builder:
    return Builder(Design("tiny", METHODS, (0, 1, 2), 4, 8, 4, (1, 2, 4, 8, 16), Bootstrap(200, 0)))


@pytest.fixture(scope="session")
def heads() -> list[tuple[int, int]]:
    """All heads of a model of 4 layers and 8 heads, by layer."""
    return list(itertools.product(range(4), range(8)))


@pytest.fixture(scope="session")
def summary(build) -> pd.DataFrame:
    """The patching summary of both phases, sites, directions and measures."""
    shares = {"top": 0.8, "random": 0.1, "depth_matched": 0.2, "lowest": -0.02, "all": 0.97}
    rows = []
    written = {1: ("focus", "region_recall"), 2: ("confusion", "near_miss_rate")}
    for phase, metrics in written.items():
        for measure, site in itertools.product((*metrics, "margin"), ("pattern", "output")):
            frame = build.patched(
                {k: v * (0.05 if site == "pattern" else 1) for k, v in shares.items()},
                metric=measure,
                phase=phase,
                site=site,
                gap=20.0 if measure == "margin" else 0.3,
            )
            if measure == "margin":
                frame[["clean", "corrupted", "patched"]] -= 0.5
            keys = ["phase", "twin", "site", "direction", "ranking", "bin", "metric"]
            for key, part in frame.groupby(keys):
                start = part["corrupted" if key[3] == "denoise" else "clean"].mean()
                gap = part["clean"].mean() - part["corrupted"].mean()
                moved = part["patched"].mean() - start
                pct = 100 * moved / (gap if key[3] == "denoise" else -gap)
                rows.append(
                    dict(zip(keys, key, strict=True))
                    | {
                        "n": 24,
                        "n_dropped": 1,
                        "n_donor_window": 0,
                        "clean": part["clean"].mean(),
                        "corrupted": part["corrupted"].mean(),
                        "patched": part["patched"].mean(),
                        "difference": moved,
                        "ci_low": moved - 0.05 * abs(gap),
                        "ci_high": moved + 0.05 * abs(gap),
                        "no_percentage": "",
                        "pct_gap": pct,
                        "pct_gap_low": pct - 5,
                        "pct_gap_high": pct + 5,
                        "pct_paper": 0.8 * pct
                        if measure in ("focus", "confusion")
                        else float("nan"),
                    }
                )
    return pd.DataFrame(rows)


@pytest.fixture(scope="session")
def head_scores(heads) -> pd.DataFrame:
    """Primary scores of both phases: falling with the layer in phase 1, rising in phase 2."""
    rng = np.random.default_rng(0)
    rows = []
    for phase, key in ((1, ("coarse", "unembed", "out")), (2, ("refine", "", ""))):
        for layer, head in heads:
            value = (3 - layer if phase == 1 else layer) + rng.normal(0, 0.5)
            rows.append(("teacher", phase, *key, layer, head, value, value - 0.2, value + 0.2, 100))
    return pd.DataFrame(
        rows,
        columns=[
            "model",
            "phase",
            "score",
            "anchor",
            "sinks",
            "layer",
            "head",
            "value",
            "ci_low",
            "ci_high",
            "n",
        ],
    )


@pytest.fixture(scope="session")
def dynamics(heads) -> pd.DataFrame:
    """Shortlist similarity rises, near-miss similarity falls; undefined in the first stage."""
    rng = np.random.default_rng(0)
    stages = ("1-10", "11-20", "21-35", "36-50", "51+")
    trends = {"similarity_shortlist": 0.1, "similarity_near_miss": -0.1, "help_cosine": 0.05}
    rows = [
        (
            layer,
            head,
            f"n{i}",
            stage,
            quantity,
            np.nan
            if s == 0 and quantity != "help_cosine"
            else 0.3 + slope * s + rng.normal(0, 0.1),
        )
        for layer, head in heads
        for i in range(8)
        for s, stage in enumerate(stages)
        for quantity, slope in trends.items()
    ]
    return pd.DataFrame(rows, columns=["layer", "head", "example", "stage", "quantity", "value"])


@pytest.fixture(scope="session")
def full(build, summary, head_scores, dynamics, heads) -> Evidence:
    """A study that made every table."""
    rng = np.random.default_rng(7)
    methods = ("teacher", *METHODS)
    metrics = (
        "focus",
        "confusion",
        "samples_f1",
        "focus_shuffled",
        "confusion_shuffled",
        "margin_region",
        "margin_within",
        "sharp",
        "align",
        "loop",
        "help",
    )
    scores = build.scores({(m, k): rng.uniform(0.3, 0.7) for m in methods for k in metrics})
    corpus = pd.DataFrame(
        [
            (m, m, 0, k, 0.9)
            for m in methods
            for k in ("micro_f1", "macro_f1_gold_present", "exact_match")
        ],
        columns=["model", "method", "seed", "metric", "value"],
    )
    keys = (
        "focus",
        "confusion",
        "macro_f1_gold_present",
        "micro_f1",
        "sharp",
        "margin_region",
        "margin_within",
    )
    rows = [
        (k, "mech", b, 0.05, 0.01, 0.1, "up")
        for k in keys
        for b in ("vanilla", "vanilla_positions")
    ]
    rows += [(k, m, "vanilla", 0.2, 0.1, 0.3, "up") for k in keys for m in ("p1_only", "p2_only")]
    rows += [(k, m, "teacher", -0.2, -0.3, -0.1, "down") for k in keys for m in METHODS]
    predictions = pd.DataFrame(
        [
            (m, m, 0, note, ["A"], ["A"], "no answer" if i == 0 else "ok")
            for m in methods
            for i, note in enumerate(NOTES)
        ],
        columns=["model", "method", "seed", "example", "gold", "predicted", "status"],
    )
    scored = (
        (1, "coarse", "unembed", "out", 0.8),
        (1, "cosine", "unembed", "", 0.9),
        (2, "refine", "", "", 0.1),
        (2, "help", "", "", 0.6),
        (2, "attention_cue", "", "", 0.5),
    )
    agreement = pd.DataFrame(
        [
            {
                "phase": phase,
                "score": score,
                "anchor": anchor,
                "sinks": sinks,
                "twin": {1: "K1", 2: "K2"}[phase],
                "site": site,
                "metric": "margin",
                "direction": direction,
                "spearman": rho if site == "output" else -rho,
                "ci_low": 0.1,
                "ci_high": 0.9,
                "captured": rho / 2,
                "captured_low": 0.0,
                "captured_high": 1.0,
                "n": 40,
                "n_heads": 32,
            }
            for phase, score, anchor, sinks, rho in scored
            for site in ("output", "pattern")
            for direction in ("denoise", "noise", "mean")
        ]
    )
    manipulation = pd.DataFrame(
        [
            (phase, twin, note, metric, 0.8, 0.2 + rng.normal(0, 0.01))
            for phase, twin, metric in (
                (1, "K1", "focus"),
                (1, "K0", "focus"),
                (2, "K2", "confusion"),
            )
            for note in NOTES
        ],
        columns=["phase", "twin", "example", "metric", "clean", "corrupted"],
    )
    shapes = {(m, k): (lambda t: 0.3 + 0.2 * t) for m in methods for k in ("focus", "confusion")}
    reliability = pd.DataFrame(
        [
            (phase, *key, 0.8, 0.6, 0.9, 60)
            for phase, key in ((1, ("coarse", "unembed", "out")), (2, ("refine", "", "")))
        ],
        columns=["phase", "score", "anchor", "sinks", "spearman", "ci_low", "ci_high", "n"],
    )
    budgets = {
        (m, s): {
            "parameters": 1000,
            "steps": 400,
            "sequences": 12800,
            "target_tokens": 100000,
            "left_out": [],
        }
        for m in METHODS
        for s in (0, 1, 2)
    }
    return Evidence(
        build.design,
        {
            "patching_summary": summary,
            "head_scores": head_scores,
            "dynamics": dynamics,
            "rankings": build.rankings({1: heads, 2: heads[::-1]}),
            "scores": scores,
            "corpus": corpus,
            "comparisons": build.comparisons(rows),
            "predictions": predictions,
            "causal_agreement": agreement,
            "manipulation": manipulation,
            "curves": build.curves(shapes),
            "reliability": reliability,
        },
        budgets,
    )
