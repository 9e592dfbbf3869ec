import numpy as np
import pandas as pd
import pytest

from mechdistill.report.claims import heads as claims
from mechdistill.report.evidence import NotTested
from mechdistill.report.rankings import against_chance
from mechdistill.report.verdicts import Verdict


def test_early_heads_on_top_hold(build, heads):
    evidence = build.evidence(rankings=build.rankings({1: heads}))
    outcome = claims.coarse_heads_are_early(evidence)
    assert outcome.decided is Verdict.HOLDS
    assert outcome.parts[0].estimate.effect == pytest.approx(1 - 1 / 4, abs=0.05)


def test_late_heads_on_top_refute(build, heads):
    evidence = build.evidence(rankings=build.rankings({1: heads[::-1]}))
    assert claims.coarse_heads_are_early(evidence).decided is not Verdict.HOLDS


def test_mixed_layers_show_no_difference(build, heads):
    mixed = sorted(heads, key=lambda head: head[1])
    evidence = build.evidence(rankings=build.rankings({1: mixed}))
    assert claims.coarse_heads_are_early(evidence).decided is Verdict.NO_DIFFERENCE


def test_refine_heads_later_than_coarse_heads(build, heads):
    later = build.evidence(rankings=build.rankings({1: heads, 2: heads[::-1]}))
    assert claims.refine_heads_are_later(later).decided is Verdict.HOLDS
    earlier = build.evidence(rankings=build.rankings({1: heads[::-1], 2: heads}))
    assert claims.refine_heads_are_later(earlier).decided is Verdict.DOES_NOT_HOLD
    same = build.evidence(rankings=build.rankings({1: heads, 2: heads}))
    assert claims.refine_heads_are_later(same).decided is Verdict.NO_DIFFERENCE


def test_equal_head_sets_are_not_isolatable(build, heads):
    evidence = build.evidence(rankings=build.rankings({1: heads, 2: heads}))
    assert claims.phases_are_isolatable(evidence).decided is Verdict.DOES_NOT_HOLD


def test_disjoint_sets_alone_leave_isolation_open(build, heads):
    evidence = build.evidence(rankings=build.rankings({1: heads, 2: heads[::-1]}))
    outcome = claims.phases_are_isolatable(evidence)
    assert outcome.decided is Verdict.UNDECIDED
    assert "not run" in outcome.note


@pytest.mark.parametrize(
    ("own", "other", "verdict"),
    [(0.8, 0.1, Verdict.HOLDS), (0.1, 0.8, Verdict.DOES_NOT_HOLD)],
)
def test_double_dissociation(build, heads, own, other, verdict):
    margin = pd.concat(
        build.patched({"top": share}, metric="margin", phase=phase, site="output", twin=twin)
        for phase, twin, share in (
            (1, "K1", own),
            (1, "K2", other),
            (2, "K2", own),
            (2, "K1", other),
        )
    )
    rankings = build.rankings({1: heads, 2: heads[::-1]})
    evidence = build.evidence(rankings=rankings, margin=margin)
    assert claims.phases_are_isolatable(evidence).decided is verdict


def attention(top_mass, others_mass, expected):
    rows = [
        (1, layer, head, f"n{i}", top_mass if (layer, head) == (0, 0) else others_mass, expected)
        for layer in range(4)
        for head in range(8)
        for i in range(12)
    ]
    frame = pd.DataFrame(
        rows,
        columns=["phase", "layer", "head", "example", "anchor_mass", "anchor_mass_expected"],
    )
    jitter = np.random.default_rng(0).normal(0, 0.005, len(frame))
    return frame.assign(anchor_mass=frame["anchor_mass"] + jitter, weights=None)


@pytest.mark.parametrize(
    ("mass", "verdict"),
    [
        ((0.6, 0.2, 0.1), Verdict.HOLDS),
        ((0.2, 0.6, 0.1), Verdict.DOES_NOT_HOLD),
        ((0.05, 0.02, 0.1), Verdict.DOES_NOT_HOLD),
    ],
)
def test_top_head_must_beat_chance_and_other_heads(build, heads, mass, verdict):
    evidence = build.evidence(attention_rows=attention(*mass), rankings=build.rankings({1: heads}))
    assert claims.top_head_reads_anchors(evidence).decided is verdict


def dynamics(per_stage, stages=("1-10", "11-20", "21-35", "36-50")):
    rng = np.random.default_rng(0)
    rows = [
        (2, 0, head, f"n{i}", stage, "similarity_shortlist", 0.3 + per_stage * s + noise)
        for head in range(4)
        for i in range(15)
        for s, stage in enumerate(stages)
        for noise in [rng.normal(0, 0.05)]
    ]
    return pd.DataFrame(
        rows, columns=["phase", "layer", "head", "example", "stage", "quantity", "value"]
    )


@pytest.mark.parametrize(
    ("per_stage", "verdict"),
    [(0.1, Verdict.HOLDS), (-0.1, Verdict.DOES_NOT_HOLD), (0.0, Verdict.NO_DIFFERENCE)],
)
def test_similarity_over_stages(build, heads, per_stage, verdict):
    evidence = build.evidence(dynamics=dynamics(per_stage), rankings=build.rankings({2: heads}))
    assert claims.shortlist_similarity_rises(evidence).decided is verdict


def test_undefined_stages_are_gaps_and_not_zeros(build, heads):
    frame = dynamics(0.1)
    frame.loc[frame["stage"] == "1-10", "value"] = np.nan
    evidence = build.evidence(dynamics=frame, rankings=build.rankings({2: heads}))
    outcome = claims.shortlist_similarity_rises(evidence)
    assert outcome.parts[0].estimate.effect == pytest.approx(0.1, abs=0.02)
    assert "1-10" not in outcome.note


def test_quantity_that_is_nowhere_defined_is_not_tested(build, heads):
    evidence = build.evidence(dynamics=dynamics(0.1), rankings=build.rankings({2: heads}))
    with pytest.raises(NotTested, match="no stage"):
        claims.near_miss_similarity_falls(evidence)


def test_kurtosis_is_stable_where_eps_moves_the_pooled_row_by_less_than_a_hundredth(build):
    def decided(printed):
        scores = build.scores(
            {("teacher", "eps_change"): printed, ("teacher", "eps_change_without_sinks"): 0.5}
        )
        scores["value"] = scores["value"].where(scores["metric"] != "eps_change", printed)
        return claims.kurtosis_is_stable(build.evidence(scores=scores)).decided

    assert decided(0.001) is Verdict.HOLDS
    assert decided(0.2) is Verdict.DOES_NOT_HOLD


def test_kurtosis_of_a_teacher_without_a_pool_is_not_tested(build):
    with pytest.raises(NotTested, match="pool of phase 1 is empty"):
        claims.kurtosis_is_stable(build.evidence(scores=build.scores({("teacher", "focus"): 0.5})))


def test_untested_parts_of_the_model_are_said_to_be_untested(build):
    with pytest.raises(NotTested, match="MLP"):
        claims.mlps_matter_little(build.evidence())


def test_chance_interval_excludes_zero_only_beyond_the_draws():
    def die(rng):
        return float(rng.integers(1, 7))

    assert against_chance(10, die, 5, "", 500, 0).low > 0
    assert against_chance(-3, die, 5, "", 500, 0).high < 0
    inside = against_chance(6, die, 5, "", 500, 0)
    assert inside.low <= 0 <= inside.high
