import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.axis import Axis
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.text import Text

from mechdistill import figure_style
from mechdistill.errors import InputError
from mechdistill.report.attention import AttendedTrace, Word
from mechdistill.report.event_attention import PLACES
from mechdistill.report.figures import style
from mechdistill.report.figures.attention import SIZES, figure4, fit, flow, points4
from mechdistill.report.figures.curves import all_bands, curve_bands, figure1, points1
from mechdistill.report.figures.decisions import figure10, points10
from mechdistill.report.figures.elicitation import figure14, points14
from mechdistill.report.figures.event_attention import EVEN, figure13, points13
from mechdistill.report.figures.head_sets import figure11, points11
from mechdistill.report.figures.heads import figure7, points7, ranked_scores, stage_means
from mechdistill.report.figures.knock_in import figure12, points12
from mechdistill.report.figures.patching import patching_figure, points
from mechdistill.report.figures.points import as_frame, to_csv
from mechdistill.report.resampling import Bootstrap
from mechdistill.report.trajectories import stage_start
from mechdistill.traces.decision_events import KINDS

BOOT = Bootstrap(50, 0)


def note():
    words = [
        Word("<bos>", "", 0.1),
        Word("History:", "", 0.02),
        Word("leg swelling", "evidence", 0.3),
    ]
    words += [Word("I50.21 " + "very long description " * 4, "", 0.01), Word("gout", "anchor", 0.2)]
    words += [Word(f"word{i}", "cue" if i == 7 else "", 0.003) for i in range(80)]
    return AttendedTrace("ranking-00000", (2, 7), tuple(words), 80)


def effects(kinds):
    """Heads of 4 layers; the first two of each kind count."""
    heads = [(layer, head) for layer in range(4) for head in range(4)]
    rows = [
        (kind, segment, *head, 3.0 - i, 2.5 - i, 3.5 - i, 1.0 - i / 2, 2.0 - i, i < 2)
        for kind in kinds
        for segment in ("reasoning", "answer")
        for i, head in enumerate(heads)
    ]
    columns = ["kind", "segment", "layer", "head", "effect", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=[*columns, "attribution", "excess", "above_null"])


def shares():
    """Departures have no share; a large bin has no controls."""
    rows = [
        (kind, segment, mode, ranking, size, np.nan if kind == "departure" else size / 16)
        for kind in KINDS
        for segment in ("reasoning", "answer")
        for mode in ("ablated", "kept")
        for ranking in ("top", "random", "depth_matched", "lowest")
        for size in (1, 2, 4, 16)
        if ranking == "top" or size < 16
    ]
    frame = pd.DataFrame(rows, columns=["kind", "segment", "mode", "ranking", "bin", "share"])
    return frame.assign(ci_low=frame["share"] - 0.1, ci_high=frame["share"] + 0.1)


def knocked_in():
    """The same, of donors and, of the first heads, of notes that decide alike."""
    own = shares().query("mode == 'ablated'").drop(columns="mode")
    null = own.assign(null="same_way", share=own["share"] / 4)
    return pd.concat([own.assign(null=""), null], ignore_index=True).assign(n=3)


def attended(kinds=KINDS):
    """Each place of a kind has its own mass; no other token stands for departures."""
    rows = [
        (kind, segment, place, 0.05 * i, 0.05 * i + 0.1, 0.04 * i, 0 if kind == "departure" else 3)
        for kind in kinds
        for segment in ("reasoning", "answer")
        for i, place in enumerate(PLACES)
        if kind == "departure" or place != "near_miss"
    ]
    columns = ["kind", "segment", "place", "mass", "other", "uniform", "n_other"]
    frame = pd.DataFrame(rows, columns=columns).assign(n=3, heads=2)
    frame["other"] = frame["other"].where(frame["n_other"] > 0)
    for value, ends in (("mass", "ci"), ("other", "other")):
        frame[f"{ends}_low"], frame[f"{ends}_high"] = frame[value] - 0.02, frame[value] + 0.02
    return frame


def probed():
    """A model of 4 layers that knows its region at the decision, and less the earlier it is."""
    rows = [
        (offset, layer, found, found - 0.05, found + 0.05, 0.1, 0.07, 30)
        for offset in (0, 1, 2, 5)
        for layer in range(5)
        for found in [0.1 + layer / 5 / (1 + offset)]
    ]
    columns = ["offset", "layer", "accuracy", "ci_low", "ci_high", "shuffled", "majority", "notes"]
    return pd.DataFrame(rows, columns=columns)


def ablated_before():
    own = effects(("region",)).query("segment == 'reasoning'").assign(n=30)
    return pd.concat([own.assign(offset=offset) for offset in (1, 2, 4)], ignore_index=True)


def draw1(curves, methods):
    return figure1(all_bands(curves, methods, BOOT), methods)


@pytest.fixture
def figures(build, summary, head_scores, dynamics):
    """Number -> function that draws."""
    shapes = {
        (method, metric): (lambda t, k=k: 0.3 + 0.3 * t - 0.02 * k)
        for k, method in enumerate(style.METHODS)
        for metric in ("focus", "confusion")
    }
    return {
        1: lambda: draw1(build.curves(shapes), tuple(style.METHODS)),
        4: lambda: figure4(head_scores, note(), 4),
        44: lambda: figure4(head_scores, None, 4),  # restricted: no note
        5: lambda: patching_figure(summary, 1),
        7: lambda: figure7(head_scores, dynamics, 4, BOOT),
        8: lambda: patching_figure(summary, 2),
        10: lambda: figure10(effects(KINDS)),
        11: lambda: figure11(shares()),
        12: lambda: figure12(knocked_in()),
        13: lambda: figure13(attended()),
        1313: lambda: figure13(attended(("region",))),  # no head counts at the others
        14: lambda: figure14(probed(), ablated_before()),
        1414: lambda: figure14(probed(), ablated_before()[:0]),  # no head was ablated
        1010: lambda: figure10(effects(("region",))),  # the others are never decided
    }


def texts(figure):
    """Drawn texts with something in them, and their boxes in pixels."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    beyond = {id(label) for label in labels_beyond_their_axis(figure)}
    return [
        (text, text.get_window_extent(renderer))
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and id(text) not in beyond
    ]


def labels_beyond_their_axis(figure):
    """Tick labels that matplotlib keeps and does not draw."""
    for axis in figure.findobj(Axis):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            if not low <= tick.get_loc() <= high:
                yield from (tick.label1, tick.label2)


@pytest.mark.parametrize("number", [1, 4, 5, 7, 8, 10, 1010, 11, 12, 13, 1313, 14, 1414])
def test_figure_is_legible(figures, number):
    """No text over another, none beyond the page, none smaller than 6 points."""
    figure = figures[number]()
    with figure_style.style():
        found = texts(figure)
    width, height = figure.bbox.width, figure.bbox.height
    for text, box in found:
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y1 <= height + 1, text
        assert text.get_fontsize() >= 6, text
    for (one, a), (other, b) in itertools.combinations(found, 2):
        wide = min(a.x1, b.x1) - max(a.x0, b.x0)
        high = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert not (wide > 1 and high > 1), (one, other)


def test_files_are_the_same_bytes_each_time(figures, tmp_path):
    for run in "ab":
        figure_style.save(figures[7](), tmp_path / f"{run}.pdf", tmp_path / f"{run}.png")
    for suffix in ("pdf", "png"):
        one, other = ((tmp_path / f"{run}.{suffix}").read_bytes() for run in "ab")
        assert one == other
    assert b"CreationDate" not in (tmp_path / "a.pdf").read_bytes()


def test_bars_are_the_summarys_means(summary):
    figure = patching_figure(summary, 1)
    panel = figure.axes[2]  # denoise, outputs, generated reasoning
    rows = summary[
        (summary["phase"] == 1)
        & (summary["site"] == "output")
        & (summary["direction"] == "denoise")
        & (summary["metric"] == "focus")
    ]
    heights = sorted(p.get_height() for p in panel.patches if p.get_width() < 0.6)
    assert heights == pytest.approx(sorted(rows["patched"]))


def test_both_percentages_stand_under_the_bins(summary):
    panel = patching_figure(summary, 1).axes[2]
    labels = [text.get_text() for text in panel.get_xticklabels()]
    assert labels[0] == "corrupted\npct_gap\npct_paper"
    assert labels[-2] == "16\n80 %\n64 %"
    assert labels[-1].startswith("all\n")


def test_undefined_percentage_is_a_dash(summary):
    panel = patching_figure(summary, 1).axes[10]  # margin: the paper has no percentage for it
    assert panel.get_xticklabels()[1].get_text().endswith("\n–")


def test_condition_that_was_not_run_is_said_to_be_missing(summary):
    patterns = (summary["metric"] == "margin") & (summary["site"] == "pattern")
    figure = patching_figure(summary[~patterns], 1)
    assert "not run" in [text.get_text() for text in figure.axes[8].texts]


def test_measure_that_no_run_has_takes_no_room(summary):
    assert len(patching_figure(summary[summary["metric"] == "margin"], 1).axes) == 4
    with pytest.raises(InputError, match="phase 1"):
        patching_figure(summary[summary["phase"] == 2], 1)


def test_palette_is_okabe_and_itos():
    palette = {
        "#000000",
        "#e69f00",
        "#56b4e9",
        "#009e73",
        "#f0e442",
        "#0072b2",
        "#d55e00",
        "#cc79a7",
    }
    used = {to_hex(colour) for colour, *_ in style.METHODS.values()}
    used |= {to_hex(colour) for colour, _ in style.DEPTHS}
    assert used <= palette
    assert len(used & palette) == len(style.METHODS) or len(used) >= 6


def test_methods_differ_in_more_than_colour():
    looks = [(dashes, marker) for _, dashes, marker in style.METHODS.values()]
    assert len(set(looks)) == len(looks)


def test_methods_without_a_look_of_their_own_are_drawn_and_differ(build):
    methods = ("teacher", "mech", *(f"new_{number}" for number in range(32)))
    drawn = style.looks(methods)
    assert drawn["mech"] == style.METHODS["mech"]
    assert len({(dashes, marker) for _, dashes, marker in drawn.values()}) == len(methods)
    shapes = {(m, "focus"): (lambda t, k=k: 0.3 + 0.1 * k * t) for k, m in enumerate(methods[:5])}
    figure = draw1(build.curves(shapes), methods[:5])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()][2:] == ["new_0", "new_1", "new_2"]
    lines = figure.axes[0].lines[:5]
    assert len({(line.get_color(), line.get_linestyle(), line.get_marker()) for line in lines}) == 5


def test_curve_band_is_mean_over_seeds_and_notes(build):
    curves = build.curves({("mech", "focus"): lambda t: t})
    band = curve_bands(curves, "mech", "focus", "cumulative", BOOT)
    mean = curves[curves["kind"] == "cumulative"].groupby("t")["value"].mean()
    assert band["mean"].to_numpy() == pytest.approx(mean.to_numpy())
    assert (band["low"] < band["mean"]).all()
    assert (band["n"] == 10).all()


def test_method_without_curves_is_left_out(build):
    figure = draw1(build.curves({("mech", "focus"): lambda t: t}), ("teacher", "mech"))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Mech (phases 1 and 2)"]


def test_best_head_is_on_top(head_scores):
    scores = ranked_scores(head_scores, 2)
    assert scores["value"].is_monotonic_decreasing
    figure = figure7(head_scores, _dynamics(), 4, BOOT)
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    best = scores.iloc[0]
    assert labels[-1] == f"L{best['layer']}H{best['head']}"


def _dynamics():
    return pd.DataFrame(
        [(0, 0, "n0", "1-10", "help_cosine", 0.1)],
        columns=["layer", "head", "example", "stage", "quantity", "value"],
    )


def test_undefined_stage_is_a_gap(dynamics):
    means = stage_means(dynamics, (0, 0), "similarity_shortlist", BOOT)
    assert "1-10" not in set(means["stage"])
    assert means["n"].eq(8).all()


def test_words_fill_lines_without_overlap():
    placed = flow([f"word{i}" * (1 + i % 3) for i in range(60)], 200.0, 7.0)
    lines = {}
    for word in placed:
        assert word.x + word.width <= 200.0 + 1e-9
        lines.setdefault(word.y, []).append(word)
    for line in lines.values():
        ends = [word.x + word.width for word in line]
        starts = [word.x for word in line]
        assert all(np.array(starts[1:]) > np.array(ends[:-1]))
    assert [word.index for word in placed] == list(range(60))


def test_long_label_is_cut_and_marked():
    (placed,) = flow(["x" * 100], 400.0, 7.0)
    assert placed.text.endswith("…")
    assert len(placed.text) <= 38


def test_letters_shrink_until_the_note_fits():
    words = ["word"] * 200
    few, many = fit(words[:10], 250.0, 250.0), fit(words, 250.0, 250.0)
    assert few[0].size == SIZES[0]
    assert many[0].size < SIZES[0]
    assert many[-1].y <= 250.0 or many[0].size == SIZES[-1]


def test_point_of_a_few_long_traces_is_not_drawn(build):
    curves = build.curves({("mech", "focus"): lambda t: t})
    few = (curves["t"] == 1.0) & ~curves["example"].isin(curves["example"].unique()[:3])
    curves.loc[few, "value"] = np.nan
    band = curve_bands(curves, "mech", "focus", "cumulative", BOOT)
    assert np.isnan(band["mean"].iloc[-1])
    assert band["n"].iloc[-1] == 3
    assert band["mean"].iloc[:-1].notna().all()


def test_points_of_curves_are_those_of_the_bands(build):
    curves = build.curves({("mech", "focus"): lambda t: t})
    bands = all_bands(curves, ("teacher", "mech"), BOOT)
    found = as_frame(points1(bands))
    assert set(found["line"]) == {"mech"}
    own = found[found["panel"] == "a focus, cumulative"]
    band = curve_bands(curves, "mech", "focus", "cumulative", BOOT)
    assert own["value"].tolist() == band["mean"].tolist()
    assert own["point"].iloc[0] == f"t {band['t'].iloc[0]:g}"


def test_points_name_the_bars_that_are_drawn(summary):
    found = points(summary, 1)
    assert not found.duplicated(["panel", "line", "point"]).any()
    figure = patching_figure(summary, 1)
    for axes, (_, own) in zip(figure.axes, found.groupby("panel"), strict=True):
        heights = sorted(bar.get_height() for bar in axes.patches)
        assert heights == pytest.approx(sorted(own["value"]))
    rows = summary[(summary["phase"] == 1) & (summary["ranking"] == "top")]
    named = found[(found["line"] == "top") & found["panel"].str.contains("denoise output margin")]
    wanted = rows[(rows["metric"] == "margin") & (rows["site"] == "output")]
    wanted = wanted[wanted["direction"] == "denoise"]
    assert named["pct_gap"].tolist() == pytest.approx(wanted["pct_gap"].tolist(), nan_ok=True)


def test_points_of_heads_have_their_intervals_and_stages_in_order(head_scores, dynamics):
    found = as_frame(points7(head_scores, dynamics, BOOT))
    ranking = found[found["panel"] == "a ranking"]
    assert ranking["value"].is_monotonic_decreasing
    assert (ranking["low"] <= ranking["value"]).all()
    course = found[found["panel"] == "d help_cosine"]
    starts = course.groupby("line")["point"].agg(
        lambda names: [stage_start(name.removeprefix("tokens ")) for name in names]
    )
    assert all(order == sorted(order) for order in starts)


def test_restricted_data_leave_no_word_among_the_points(head_scores):
    shown, hidden = as_frame(points4(head_scores, note())), as_frame(points4(head_scores, None))
    assert "leg swelling" in set(shown["point"])
    assert set(hidden["panel"]) == {"a ranking"}


def test_points_as_text_have_whole_numbers_of_notes(head_scores):
    first, *rows = to_csv(as_frame(points4(head_scores, note()))).splitlines()
    assert first == "panel,line,point,value,low,high,n_notes"
    assert rows[0].split(",")[-1].isdigit()
    assert rows[-1].endswith(",,,")


def test_points_of_heads_at_decisions_name_kind_head_and_set():
    heads = points10(effects(["region"]).assign(n=5))
    assert heads["panel"].unique().tolist() == ["region, reasoning", "region, answer"]
    assert (heads["point"].iloc[0], heads["value"].iloc[0]) == ("L0H0", 3.0)
    assert not heads.duplicated(["panel", "point"]).any()
    sets = as_frame(points11(shares().assign(n=5)))
    assert not sets.duplicated(["panel", "line", "point"]).any()
    assert {"top ablated", "random kept"} <= {*sets["line"]}
    carried = as_frame(points12(knocked_in()))
    assert not carried.duplicated(["panel", "line", "point"]).any()
    assert {"random", "top, notes that decide alike"} <= {*carried["line"]}
    assert "random, notes that decide alike" not in {*carried["line"]}


@pytest.mark.parametrize("number", [11, 12])
def test_legend_shows_three_dashes_at_least(figures, number):
    figure = figures[number]()
    figure.draw_without_rendering()
    drawn = [line for line in figure.legends[0].get_lines() if line.is_dashed()]
    assert drawn
    for line in drawn:
        ends = line.get_transform().transform(line.get_xydata())[:, 0]
        points = (ends.max() - ends.min()) * 72 / figure.dpi
        dash, gap = line._dash_pattern[1]
        assert points >= 3 * dash + 2 * gap  # a marker hides the middle


def test_points_of_attention_are_what_the_panels_show():
    made = as_frame(points13(attended()))
    assert not made.duplicated(["panel", "line", "point"]).any()
    places = made.groupby("panel")["point"].nunique()
    assert places.loc["region, reasoning"] == len(PLACES) - 1
    assert places.loc["departure, answer"] == len(PLACES)
    cells = made.set_index(["panel", "line", "point"])["value"]
    at = cells["departure, answer", "at the decisions", PLACES["near_miss"]]
    assert at == pytest.approx(0.05 * list(PLACES).index("near_miss"))
    assert cells["region, answer", EVEN, PLACES["sinks"]] == pytest.approx(0.24)
    axes = figure13(attended()).axes[0]
    values = sorted(value for line in axes.lines for value in line.get_xdata())
    shown = made[made["panel"] == "region, reasoning"]["value"]
    assert values == pytest.approx(sorted(shown))


def test_points_before_decisions_are_those_drawn():
    probe, heads = probed(), ablated_before()
    found = points14(probe, heads)
    assert not found.duplicated(["panel", "line", "point"]).any()
    left, right = figure14(probe, heads).axes
    layers = found[found["line"].str.startswith("layer")].groupby("line", sort=False)["value"]
    for (_, values), line in zip(layers, left.lines[:5], strict=True):
        assert sorted(line.get_ydata()) == sorted(values)
    marks = [dots for dots in right.collections if isinstance(dots, PathCollection)]
    drawn = {True: 0, False: 0}
    for dots in marks:
        drawn[to_hex(dots.get_facecolor()[0]) != "#ffffff"] += len(dots.get_offsets())
    above = found["above_null"].dropna()
    assert drawn == {True: above.sum(), False: (~above).sum()} == {True: 6, False: 42}
