"""What the report reads: the tables of a study, by name, with the columns it relies on.

A table that the study did not make is absent, and what needs it is "not tested in this study".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from mechdistill.artifacts import how_to_make, read_json, read_table
from mechdistill.errors import InputError
from mechdistill.report.resampling import Bootstrap
from mechdistill.significance.plan import baselines

COLUMNS: dict[str, tuple[str, ...]] = {
    "head_scores": (
        *("model", "phase", "score", "anchor", "sinks", "layer", "head"),
        *("value", "ci_low", "ci_high", "n"),
    ),
    "rankings": ("model", "phase", "score", "anchor", "sinks", "rank", "layer", "head"),
    "reliability": ("phase", "score", "anchor", "sinks", "spearman", "ci_low", "ci_high", "n"),
    "causal_agreement": (
        *("phase", "score", "anchor", "sinks", "twin", "site", "metric", "direction"),
        *("spearman", "ci_low", "ci_high", "captured", "captured_low", "captured_high", "n"),
    ),
    "dynamics": ("layer", "head", "example", "stage", "quantity", "value"),
    "attention_rows": ("phase", "layer", "head", "example", "weights"),
    "margin": (
        *("phase", "twin", "site", "direction", "ranking", "bin", "draw"),
        *("example", "metric", "clean", "corrupted", "patched"),
    ),
    "generated": (
        *("phase", "twin", "site", "direction", "ranking", "bin", "draw"),
        *("example", "metric", "clean", "corrupted", "patched"),
    ),
    "manipulation": ("phase", "twin", "example", "metric", "clean", "corrupted"),
    "patching_summary": (
        *("phase", "twin", "site", "direction", "ranking", "bin", "metric", "n", "n_dropped"),
        *("n_donor_window", "clean", "corrupted", "patched", "difference", "ci_low", "ci_high"),
        *("no_percentage", "pct_gap", "pct_gap_low", "pct_gap_high", "pct_paper"),
    ),
    "lists": (
        *("number", "notes", "eligible", "listed", "recall", "micro_f1", "phase", "site"),
        *(
            "direction",
            "ranking",
            "bin",
            "metric",
            "n",
            "clean",
            "corrupted",
            "pct_gap",
            "pct_gap_low",
        ),
        *("pct_gap_high", "top_minus_random", "top_minus_random_low", "top_minus_random_high"),
    ),
    "events": ("example", "segment", "kind", "repeat", "margin"),
    "ablation": ("kind", "segment", "example", "layer", "head", "null", "effect"),
    "head_effects": ("kind", "segment", "layer", "head", "ci_low", "above_null"),
    "attribution": ("kind", "segment", "spearman", "ci_low", "ci_high", "captured", "n"),
    "head_sets": (
        *("kind", "segment", "mode", "ranking", "bin", "draw", "example"),
        *("margin", "floor", "patched"),
    ),
    "recovery": (
        *("method", "seed", "kind", "segment", "bin", "n", "effect", "teacher_effect"),
        *("recovery", "ci_low", "ci_high", "gain", "gain_low", "gain_high"),
        *("ratio", "ratio_low", "ratio_high"),
    ),
    "knock_in": (
        *("kind", "segment", "null", "ranking", "bin", "draw", "example", "donor"),
        *("start", "end", "patched"),
    ),
    "event_attention": (
        *("kind", "segment", "null", "place", "layer", "head", "example", "mass", "uniform"),
    ),
    "elicitation_probe": (*("offset", "layer", "notes", "gain", "gain_low", "gain_high"),),
    "elicitation_sets": (
        *("offset", "n_heads", "eliciting", "own", "shared", "depth", "own_depth"),
        *("note_mass", "uniform", "excess_low", "excess_high", "notes"),
    ),
    "scores": ("model", "method", "seed", "example", "metric", "value"),
    "corpus": ("model", "method", "seed", "metric", "value"),
    "predictions": ("model", "method", "seed", "example", "gold", "predicted", "status"),
    "curves": ("model", "method", "seed", "example", "kind", "metric", "t", "value"),
    "comparisons": (
        *("metric", "method", "baseline", "is_best_baseline", "difference", "ci_low", "ci_high"),
        *("p_wilcoxon", "p_holm", "n_documents", "n_seeds", "mark", "detectable"),
        *("reference_value", "method_value"),
    ),
}
"""Table name -> the columns read. Files may hold more."""

MAY_BE_EMPTY = frozenset(
    {
        *("reliability", "causal_agreement", "dynamics", "attention_rows"),
        *("generated", "manipulation", "patching_summary", "curves"),
        *("events", "ablation", "head_effects", "attribution", "head_sets", "recovery", "knock_in"),
        "event_attention",
        *("elicitation_probe", "elicitation_sets"),
    }
)
"""Tables that have no rows where models decide nothing; claims on them are then not tested."""


CONTENT = {
    "head_scores": "head scores",
    "rankings": "ranked heads",
    "reliability": "split-half reliability",
    "causal_agreement": "scores against single-head effects",
    "dynamics": "what heads do along the reasoning",
    "attention_rows": "attention on single notes",
    "margin": "margins under patching",
    "generated": "reasoning generated under patching",
    "manipulation": "clean and corrupted runs",
    "patching_summary": "patching effects",
    "lists": "patching with several lengths of candidate lists",
    "events": "decision events",
    "ablation": "single heads ablated at decisions",
    "head_effects": "effects of single heads on decisions",
    "attribution": "attribution against ablation",
    "head_sets": "sets of heads ablated at decisions",
    "recovery": "causal recovery of students",
    "knock_in": "outputs of heads put into another note's context",
    "event_attention": "attention of heads that count at decisions",
    "elicitation_probe": "probes that read the region before it is decided",
    "elicitation_sets": "heads that count before the region is decided",
    "scores": "scores of test notes",
    "curves": "Focus and Confusion along the reasoning",
    "corpus": "scores of the whole test split",
    "comparisons": "compared methods",
}
"""Table name -> what it holds, for people."""


class NotTested(Exception):
    """The study holds nothing that could answer; the message says why."""


@dataclass(frozen=True)
class Design:
    """What was run: the parts of the parameters that the report speaks of."""

    study: str
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    layers: int
    heads: int
    pool_size: int
    bins: tuple[int, ...]
    bootstrap: Bootstrap
    families: tuple[str, str] = ("", "")
    """Of the teacher and of the students; named where claims are judged."""

    @classmethod
    def of(cls, value: Callable[[str], Any], size: tuple[int, int]) -> Design:
        """From the parameters of a study.

        Args:
            value: gives the value of a dotted key.
            size: the teacher's numbers of layers and of heads a layer.
        """
        return cls(
            study=value("study"),
            methods=tuple(value("distil.methods")),
            seeds=tuple(value("distil.seeds")),
            layers=size[0],
            heads=size[1],
            pool_size=value("heads.pool_size"),
            bins=tuple(value("patching.bins")),
            bootstrap=Bootstrap(value("significance.bootstrap"), value("significance.seed")),
        )

    @property
    def baselines(self) -> tuple[str, ...]:
        """Methods that have no part of the proposed one."""
        return tuple(baselines(self.methods))

    @property
    def all_heads(self) -> int:
        return self.layers * self.heads

    @property
    def few_heads(self) -> int:
        """A quarter of the heads: above it, random sets overlap with the top set by necessity."""
        return max(1, self.all_heads // 4)


@dataclass(frozen=True)
class Evidence:
    """The tables at hand and the design of the study that made them."""

    design: Design
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    budgets: Mapping[tuple[str, int], Mapping[str, Any]] = field(default_factory=dict)

    def having(self, **tables: pd.DataFrame) -> Evidence:
        """The same evidence with some tables put in their place."""
        return replace(self, tables={**self.tables, **tables})

    def table(self, name: str) -> pd.DataFrame:
        """The table `name`.

        Raises:
            NotTested: the study has no such table, or it is empty.
        """
        if name not in COLUMNS:
            raise KeyError(f"no table named {name}; known: {', '.join(COLUMNS)}")
        frame = self.tables.get(name)
        if frame is None or frame.empty:
            raise NotTested(f"the study holds no table of {CONTENT.get(name, name)}")
        return frame


def read_evidence(
    paths: Mapping[str, Path], design: Design, budgets: Mapping[tuple[str, int], Path] | None = None
) -> Evidence:
    """Read the named tables, each checked for its columns.

    Raises:
        InputError: a file is missing or damaged, or lacks a column that the report needs.
        KeyError: a name that is no table of the report.
    """
    tables = {}
    for name, path in paths.items():
        wanted = COLUMNS[name]
        frame = read_table(path, may_be_empty=name in MAY_BE_EMPTY)
        missing = [column for column in wanted if column not in frame.columns]
        if missing:
            raise InputError(
                f"{path} has no column {', '.join(missing)}, which the report reads",
                how_to_make(path),
            )
        tables[name] = frame
    read = {key: read_json(path) for key, path in (budgets or {}).items()}
    return Evidence(design, tables, read)
