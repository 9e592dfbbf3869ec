"""Calibration on made effects: which heads pass, against SciPy and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mechdistill.patching.calibration import (
    AGREEMENT,
    EFFECTS,
    attribution_agreement,
    calibrate,
    exceeds,
)
from mechdistill.patching.head_ablation import COLUMNS

EXAMPLES = 30
CASES = {  # head of layer 0 -> effect on events, other tokens, shuffled events
    0: (1.0, 0.0, 0.0),  # does something for the decision
    1: (1.0, 1.0, 0.0),  # for any token
    2: (1.0, 0.0, 1.0),  # whatever is decided
    3: (-1.0, 0.0, 0.0),  # against the decision
    4: (0.0, 0.0, 0.0),  # nothing
}


def made(seed: int = 0, noise: float = 0.3) -> pd.DataFrame:
    """Effects with noise of their own; attribution is half of the effect."""
    rng = np.random.default_rng(seed)
    rows = []
    for example in range(EXAMPLES):
        for head, levels in CASES.items():
            for null, level in zip(("", "other_token", "shuffled"), levels):
                effect = level + noise * rng.normal()
                estimate = effect / 2 if null == "" else np.nan
                cell = ("region", "reasoning", null, 0, head, f"e{example:02}", 2, 5.0)
                rows.append((*cell, effect, estimate))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def calibrated(ablation: pd.DataFrame) -> pd.DataFrame:
    return calibrate(ablation, level=0.05, resamples=50, seed=0).set_index("head")


def test_only_what_exceeds_both_nulls_counts() -> None:
    found = calibrated(made())
    assert list(found.index[found["above_null"]]) == [0]
    assert found.loc[0, "excess"] == pytest.approx(1, abs=0.35)
    assert found.loc[1, "excess"] == pytest.approx(0, abs=0.35)
    assert found.loc[2, "excess"] == pytest.approx(0, abs=0.35)
    assert (found["ci_low"] < found["effect"]).all() and (found["effect"] < found["ci_high"]).all()
    assert (found["n"] == EXAMPLES).all() and (found["decisions"] == 2 * EXAMPLES).all()


def test_p_values_are_scipys_one_sided_ones_and_q_values_its_adjustment() -> None:
    ablation = made(1)
    found = calibrated(ablation)
    wide = ablation.pivot(index="example", columns=["null", "head"], values="effect")
    expected = []
    for head in CASES:
        tests = [
            stats.wilcoxon(wide["", head] - wide[null, head], alternative="greater", method="exact")
            for null in ("other_token", "shuffled")
        ]
        expected.append(max(test.pvalue for test in tests))
    # the larger tail lacks the statistic's own share, where it is of no importance
    assert list(found["p"]) == pytest.approx(expected, abs=1e-2)
    assert found.loc[0, "p"] == pytest.approx(expected[0], rel=1e-6)
    assert list(found["q"]) == pytest.approx(list(stats.false_discovery_control(found["p"])))


def test_pure_noise_is_rarely_a_discovery() -> None:
    noise = [made(seed) for seed in range(20)]
    for frame in noise:
        rng = np.random.default_rng(len(frame))
        frame["effect"] = rng.permuted(frame["effect"].to_numpy())
    found = [calibrated(frame)["above_null"].any() for frame in noise]
    assert np.mean(found) <= 0.2


def test_without_pairs_or_differences_nothing_can_be_shown() -> None:
    differences = np.array([[np.nan, 0.0, 1.0], [np.nan, 0.0, 2.0]])
    assert list(exceeds(differences)[:2]) == [1.0, 1.0]
    alone = made()
    found = calibrated(alone[alone["null"] != "shuffled"])
    assert (found["p"] == 1).all() and not found["above_null"].any()
    assert found["shuffled"].isna().all() and found["excess"].notna().all()


def test_attribution_that_is_half_the_effect_ranks_alike() -> None:
    found = attribution_agreement(made(), top=2, resamples=50, seed=0).iloc[0]
    assert found["spearman"] == pytest.approx(1) and found["captured"] == pytest.approx(1)
    assert found["n"] == EXAMPLES and found["n_heads"] == len(CASES)
    turned = made()
    turned["attribution"] *= -1
    found = attribution_agreement(turned, top=2, resamples=50, seed=0).iloc[0]
    assert found["spearman"] == pytest.approx(-1) and found["captured"] < 0.1


def test_no_decision_at_all_gives_tables_without_rows() -> None:
    empty = pd.DataFrame(columns=list(COLUMNS))
    effects = calibrate(empty, level=0.05, resamples=10, seed=0)
    agreement = attribution_agreement(empty, top=2, resamples=10, seed=0)
    assert (tuple(effects), len(effects)) == (EFFECTS, 0)
    assert (tuple(agreement), len(agreement)) == (AGREEMENT, 0)
