import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mechdistill.significance.wilcoxon import wilcoxon

from ..evaluate.cases import agrees, cases


def is_ours(case):
    """Whether a case asks for what the wrapper would choose itself: two-sided, zeros dropped."""
    d, params = np.array(case["inputs"]["d"]), case["params"]
    plain = (d != 0).all() and len(np.unique(np.abs(d))) == len(d)
    chosen = "exact" if plain and len(d) <= 50 else "auto" if (d != 0).sum() <= 13 else "approx"
    return (
        params["method"] == chosen
        and not params.keys() & {"correction", "alternative"}
        and (params.get("zero_method", "wilcox") == "wilcox")
    )


@pytest.mark.parametrize("case", cases("wilcoxon"))
def test_worked_case(case):
    d = np.array(case["inputs"]["d"], dtype=float)
    library = stats.wilcoxon(d, **case["params"])
    assert agrees(library.statistic, case, "statistic")  # the installed SciPy is the one meant
    assert agrees(library.pvalue, case, "p")
    ours = wilcoxon(d)
    if is_ours(case):
        assert agrees(ours.statistic, case, "statistic")
        assert agrees(ours.p, case, "p")
    elif case["params"].get("method") != "auto":
        assert not agrees(ours.p, case, "p")


@pytest.mark.parametrize("case", cases("wilcoxon_paper"))
def test_the_papers_formula_has_no_tie_correction_and_ours_has(case):
    d = np.array(case["inputs"]["d"], dtype=float)
    n, ranks = len(d), stats.rankdata(np.abs(d))
    statistic = min(ranks[d > 0].sum(), ranks[d < 0].sum())
    z = (statistic - n * (n + 1) / 4) / np.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    p = 2 * stats.norm.cdf(z)

    assert agrees(statistic, case, "statistic")
    assert agrees(z, case, "z")
    assert agrees(p, case, "p")
    assert wilcoxon(d).statistic == statistic
    many = np.tile(d, 3)  # beyond the flips of sign: the normal approximation
    assert wilcoxon(many).p == stats.wilcoxon(many, method="asymptotic").pvalue


@pytest.mark.parametrize("case", cases("wilcoxon_pitfall"))
def test_does_not_fall_into_a_known_pitfall(case):
    if "d" in case["inputs"]:  # no difference at all: the library's p is nan
        d = np.array(case["inputs"]["d"], dtype=float)
        assert np.isnan(stats.wilcoxon(d, method="asymptotic").pvalue)
        assert wilcoxon(d) == (0.0, 1.0, 0, True)
        return
    # equal decimal differences are ties
    d = np.array(case["inputs"]["new"]) - np.array(case["inputs"]["base"])

    assert len(np.unique(np.abs(d))) == case["expected"]["distinct_abs_raw"]
    assert wilcoxon(d).statistic == case["expected"]["statistic_rounded"]
    assert wilcoxon(d).p == wilcoxon(np.array([0.1, 0.1, 0.1, -0.1, -0.1, 0.3])).p


def test_no_difference_at_all_is_degenerate_with_p_one():
    result = wilcoxon(np.zeros(6))

    assert result == (0.0, 1.0, 0, True)


def test_an_undefined_difference_is_refused():
    with pytest.raises(ValueError, match="nan"):
        wilcoxon(np.array([0.1, np.nan]))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40))
def test_swapping_the_methods_changes_nothing(values):
    d = np.array(values, dtype=float)

    assert wilcoxon(d) == wilcoxon(-d)
