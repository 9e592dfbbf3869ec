"""Captions: what each figure shows, from which measure, with which intervals."""

from __future__ import annotations

_PATCHED = (
    "Bars: mean over notes of the measure when the named heads are replaced, for the unpatched "
    "run and growing numbers of heads: top-ranked by {score}, random (drawn outside the top, mean "
    "of draws), random from the same layers as the top, lowest-ranked, and all heads. Upper "
    "panels: the reasoning is generated under patching, as in the paper, and read by {measures}; "
    "last four: the clean reasoning is forced and the decision margin read. Attention patterns are "
    "the paper's site; patterns leave the values of the patched run in place, outputs do not. "
    "Under each bin, for the top heads: pct_gap, the share of the clean-corrupted gap; pct_paper, "
    "the formula behind the paper's figure ({paper}). A dash: not defined, since the interval of "
    "the gap is not above 0 or the paper has no formula. Lines: 95 % intervals of the difference "
    "from the unpatched run, notes resampled. Dashed: clean; dotted: corrupted."
)

FIGURES = {
    1: (
        "Figure 1. Focus and Confusion along the reasoning",
        "Each model's own greedy traces, warped so that the first refinement position lies at "
        "t* = 0.5 (shaded: before it). Upper panels: running mean, as the definition says; lower "
        "panels: mean within each bin of t; no point where fewer than half of the notes have one. "
        "Bands: 95 % intervals, notes and training seeds resampled.",
    ),
    4: (
        "Figure 4. Heads by CoarseScore, and what the best one reads",
        "Left: mean over the ranking notes with 95 % intervals, notes resampled (anchor: centred "
        "unembedding rows; attention sinks dropped); colour: depth. Right: attention of the best "
        "head on the words of one test note, mean over the early query positions; frames mark the "
        "supporting findings, the deciding cues and the names of the true regions.",
    ),
    5: (
        "Figure 5. Patching phase-1 heads",
        "Corruption K1: findings and cues of the true codes replaced by neutral phrases. "
        + _PATCHED.format(
            score="CoarseScore",
            measures="Focus and by the share of true regions that it names",
            paper="denoise: the same share; noise: the loss divided by the clean level",
        ),
    ),
    7: (
        "Figure 7. Heads by RefineScore, and their course over the reasoning",
        "Left: mean over the ranking notes with 95 % intervals, notes resampled. Right: the four "
        "best heads by tokens of the reasoning; no point where no earlier mention exists. Cosines; "
        "intervals: notes resampled.",
    ),
    8: (
        "Figure 8. Patching phase-2 heads",
        "Corruption K2: each cue replaced by that of the near-miss. "
        + _PATCHED.format(
            score="RefineScore",
            measures="Confusion and by the share of near-misses that it keeps",
            paper="the change divided by the corrupted level (denoise) or the clean level (noise)",
        ),
    ),
    10: (
        "Figure 10. What single heads do for decisions (ours, after version 2 of the paper)",
        "Maps: margin lost when the head's output is replaced by its mean at the decision, less "
        "the larger of what the same does to tokens that decide nothing and to shuffled decisions; "
        "dots: heads that exceed both (false discoveries controlled). Below: the exact effects of "
        "all heads over their first-order estimates (attribution), filled where they count. Lines: "
        "95 % intervals, notes resampled.",
    ),
    11: (
        "Figure 11. Sets of heads at decisions (ours, after version 2 of the paper)",
        "Heads found on one half of the patching notes, ablated on the other: share of what all "
        "heads do for the margin that goes with the set (solid) and that is there with the set "
        "alone (dashed), over the number of heads, beside random, depth-matched and "
        "lowest-ranked heads. Lines: 95 % intervals, notes resampled.",
    ),
    12: (
        "Figure 12. Decisions carried into another note (ours, after version 2 of the paper)",
        "Outputs of a donor's heads at its decision in place of the recipient's at its own, where "
        "the two decide differently: how far the margin between their tokens moves, as a share of "
        "what all heads move it, over the number of heads, beside random, depth-matched and "
        "lowest-ranked heads; dashed: outputs of a note that decides as the recipient does. Lines: "
        "95 % intervals, recipients resampled.",
    ),
    13: (
        "Figure 13. What heads attend to at decisions (ours, after version 2 of the paper)",
        "Attention of the heads that count at a kind of decision, by place: filled, at the "
        "decisions; hollow, at tokens of the same notes that decide nothing, with the same places; "
        "strokes, what attention spread evenly over the visible tokens would have. Lines: 95 % "
        "intervals, notes resampled.",
    ),
    14: (
        "Figure 14. The region before it is decided (ours, after version 2 of the paper)",
        "Over the tokens before the first decision for a region in the reasoning, which has not "
        "named it. Left: accuracy of a linear probe of the residual stream behind each layer, by "
        "depth; dotted: the region most frequent in training, and the best probe of shuffled "
        "labels. Right: margin that the decision loses when a head is ablated at that one token, "
        "heads in order of layers, filled where they exceed both nulls. Lines: 95 % intervals, "
        "notes resampled.",
    ),
}
"""Figure number -> title, text."""
