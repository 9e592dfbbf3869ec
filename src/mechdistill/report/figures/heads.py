"""Figures 4 (left) and 7: ranked heads, and what the top refine heads do along the reasoning."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from mechdistill.figure_style import (
    BLACK,
    BLUE,
    PURPLE,
    VERMILION,
    WIDTH,
    letter,
    light_grid,
    new_figure,
    style,
)
from mechdistill.report.figures.points import Point
from mechdistill.report.figures.style import DEPTHS, depth_group
from mechdistill.report.rankings import NAMES, PRIMARY, name
from mechdistill.report.resampling import Bootstrap
from mechdistill.report.trajectories import stage_start

SHOWN = 16
"""Heads in a ranking (the paper shows 17 and 18 of thousands)."""
LINES = 4
QUANTITIES = {
    "similarity_shortlist": "QK similarity to\nshortlist keys (cosine)",
    "similarity_near_miss": "QK similarity to\nnear-miss keys (cosine)",
    "help_cosine": "write vs margin\ngradient (cosine)",
}
COMPACT: dict[str, Any] = {"frameon": False, "handlelength": 1.2, "columnspacing": 1.0}
_LINE_STYLES = ((BLUE, "o"), (VERMILION, "s"), (PURPLE, "^"), (BLACK, "D"))


def ranked_scores(head_scores: pd.DataFrame, phase: int) -> pd.DataFrame:
    """The teacher's heads by the phase's primary score, best first."""
    score, anchor, sinks = PRIMARY[phase]
    chosen = head_scores[
        (head_scores["model"] == "teacher")
        & (head_scores["phase"] == phase)
        & (head_scores["score"] == score)
        & (head_scores["anchor"].fillna("") == anchor)
        & (head_scores["sinks"].fillna("") == sinks)
    ]
    return chosen.sort_values(["value", "layer", "head"], ascending=[False, True, True])


def draw_ranking(axes: Axes, scores: pd.DataFrame, phase: int, layers: int, panel: str) -> None:
    """Horizontal bars, best head on top, 95 % intervals over notes, colour by depth.

    Args:
        axes: where to draw.
        scores: of `ranked_scores`.
        phase: 1 or 2.
        layers: of the model.
        panel: the panel's letter.
    """
    top = scores.head(SHOWN).iloc[::-1]
    places = range(len(top))
    groups = [depth_group(int(layer), layers) for layer in top["layer"]]
    axes.barh(list(places), top["value"], color=[DEPTHS[g][0] for g in groups], height=0.72)
    axes.hlines(list(places), top["ci_low"], top["ci_high"], color=BLACK, linewidth=0.9)
    labels = [name((int(a), int(b))) for a, b in zip(top["layer"], top["head"], strict=True)]
    axes.set_yticks(list(places), labels)
    axes.axvline(0, color=BLACK, linewidth=0.7)
    axes.set_xlabel(f"{NAMES[phase]} (mean over notes, 95 % interval)")
    letter(axes, f"{panel}  Top {len(top)} of {len(scores)} heads")
    light_grid(axes, "x")


def ranking_points(scores: pd.DataFrame) -> list[Point]:
    """The bars of `draw_ranking`, best head first."""
    return [
        Point("a ranking", "", name((row["layer"], row["head"])), row["value"], row["ci_low"],
              row["ci_high"], row["n"])
        for row in scores.head(SHOWN).to_dict("records")
    ]  # fmt: skip


def points7(head_scores: pd.DataFrame, dynamics: pd.DataFrame, boot: Bootstrap) -> list[Point]:
    """Every point of Figure 7."""
    scores = ranked_scores(head_scores, 2)
    points = ranking_points(scores)
    for quantity, panel in zip(QUANTITIES, "bcd", strict=True):
        for head in top_heads(scores):
            means = stage_means(dynamics, head, quantity, boot)
            means = means.sort_values("stage", key=lambda stages: stages.map(stage_start))
            points += [
                Point(
                    f"{panel} {quantity}",
                    name(head),
                    f"tokens {row['stage']}",
                    *(row["mean"], row["low"], row["high"], row["n"]),
                )
                for row in means.to_dict("records")
            ]
    return points


def top_heads(scores: pd.DataFrame) -> list[tuple[int, int]]:
    """The heads whose course is drawn."""
    return [(int(a), int(b)) for a, b in scores[["layer", "head"]].head(LINES).to_numpy().tolist()]


def depth_legend() -> list[Patch]:
    """What the colours of `draw_ranking` mean."""
    return [Patch(color=colour, label=text) for colour, text in DEPTHS]


def figure7(
    head_scores: pd.DataFrame, dynamics: pd.DataFrame, layers: int, boot: Bootstrap
) -> Figure:
    """Left: heads by RefineScore. Right: three quantities of the top heads over the reasoning."""
    with style():
        figure = new_figure(WIDTH, 4.6)
        scores = ranked_scores(head_scores, 2)
        parts = figure.subfigures(1, 2, width_ratios=(1, 1.15), squeeze=False)
        left, right = parts[0]
        draw_ranking(left.subplots(), scores, 2, layers, "a")
        left.legend(handles=depth_legend(), loc="outside lower center", ncols=3, **COMPACT)
        panels = right.subplots(3, 1, sharex=True)
        heads = top_heads(scores)
        stages = sorted(dynamics["stage"].unique(), key=stage_start)
        for axes, (quantity, label), panel in zip(panels, QUANTITIES.items(), "bcd", strict=True):
            for number, head in enumerate(heads):
                _dynamics(axes, dynamics, head, quantity, stages, number, boot)
            axes.set_ylabel(label)
            letter(axes, panel)
            light_grid(axes)
        panels[-1].set_xticks(range(len(stages)), stages)
        panels[-1].set_xlim(-0.5, len(stages) - 0.5)
        panels[-1].set_xlabel("token of the reasoning")
        panels[0].legend(
            loc="lower center", bbox_to_anchor=(0.5, 1.12), ncols=LINES, frameon=False,
            columnspacing=1.2, handlelength=1.8,
        )  # fmt: skip
    return figure


def stage_means(
    dynamics: pd.DataFrame, head: tuple[int, int], quantity: str, boot: Bootstrap
) -> pd.DataFrame:
    """Mean over notes by stage, only where the quantity is defined: stage, mean, low, high, n."""
    chosen = dynamics[
        (dynamics["layer"] == head[0])
        & (dynamics["head"] == head[1])
        & (dynamics["quantity"] == quantity)
        & dynamics["value"].notna()
    ]
    rows = []
    for stage, values in chosen.groupby("stage"):
        found = boot.mean(values.groupby("example")["value"].mean(), "cosine")
        rows.append((stage, found.effect, found.low, found.high, found.n))
    return pd.DataFrame(rows, columns=["stage", "mean", "low", "high", "n"])


def _dynamics(
    axes: Axes,
    dynamics: pd.DataFrame,
    head: tuple[int, int],
    quantity: str,
    stages: list[str],
    number: int,
    boot: Bootstrap,
) -> None:
    means = stage_means(dynamics, head, quantity, boot).set_index("stage").reindex(stages)
    colour, marker = _LINE_STYLES[number]
    # heads stand side by side within a stage, so that intervals do not cover each other
    x = [i + 0.09 * (number - (LINES - 1) / 2) for i in range(len(stages))]
    axes.plot(x, means["mean"], color=colour, marker=marker, markersize=3.5, label=name(head))
    axes.vlines(x, means["low"], means["high"], color=colour, linewidth=0.9)
