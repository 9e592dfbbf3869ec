"""CoarseScore's parts against scipy, worked cases and slow loops from Eq. 1 and Appendix B."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.heads.coarse import (
    anchor_alignment,
    attention_mass,
    coarse_score,
    drop_sinks,
    kurtosis,
    kurtosis_as_printed,
    log_kurtosis,
)
from tests.evaluate.cases import agrees, cases


def case_row(case):
    """The row of a worked case, in fp64."""
    generators = {
        "n=1024; first 8 entries 0.0625, the others 0.5/1016": lambda: (
            [0.0625] * 8 + [0.5 / 1016] * 1016
        ),
        "n=4096; a_i proportional to exp(-i/400)": lambda: (lambda a: a / a.sum())(
            np.exp(-np.arange(4096) / 400)
        ),
    }
    inputs = case["inputs"]
    if "alpha" in inputs:
        row = inputs["alpha"]
    elif inputs["generator"] in generators:
        row = generators[inputs["generator"]]()
    else:  # "n=16; first entry 1, rest 0"
        n = int(inputs["generator"].split(";")[0].removeprefix("n="))
        row = [1.0] + [0.0] * (n - 1)
    return torch.tensor(np.asarray(row), dtype=torch.float64)


KEYS = {"minimum_keys": 8}


def everything(row):
    return torch.ones_like(row, dtype=torch.bool)


@pytest.mark.parametrize("case", cases("kurtosis"))
def test_worked_case(case):
    row = case_row(case)
    literal = kurtosis_as_printed(row, everything(row), **KEYS)
    assert agrees(literal.item(), case, "paper_eps1e6")
    # ours has an eps too, of rows times n, where it matters for a flat row alone
    without_eps = case["expected"]["scipy_eps0"]
    expected = -3.0 if without_eps == "nan" else without_eps
    assert kurtosis(row, everything(row), **KEYS).item() == pytest.approx(expected, rel=1e-4)


@given(
    logits=st.lists(st.floats(-6, 6), min_size=8, max_size=60),
    padding=st.integers(0, 20),
    seed=st.integers(0, 9),
)
def test_kurtosis_of_visible_keys_is_scipys(logits, padding, seed):
    row = torch.softmax(torch.tensor(logits, dtype=torch.float64), -1)
    if row.var() * len(row) ** 2 < 1e-2:
        return  # a flat row: the harmless eps is no longer harmless, see the worked case
    n = len(row) + padding
    where = torch.randperm(n, generator=torch.Generator().manual_seed(seed))[: len(row)]
    wide, visible = torch.full((n,), 0.7, dtype=torch.float64), torch.zeros(n, dtype=torch.bool)
    wide[where], visible[where] = row, True
    assert kurtosis(wide, visible, **KEYS).item() == pytest.approx(
        scipy.stats.kurtosis(row.numpy(), fisher=True, bias=True), rel=1e-3, abs=1e-3
    )


def test_printed_eps_swamps_flat_rows_at_long_context():
    row = torch.softmax(torch.randn(16384, generator=torch.Generator().manual_seed(0)), -1)
    assert kurtosis(row, everything(row), **KEYS) > 10
    assert (
        kurtosis_as_printed(row, everything(row), **KEYS) < -2
    )  # below any distribution's kurtosis


def test_rows_with_too_few_keys_have_no_kurtosis():
    row = torch.tensor([0.5, 0.3, 0.2, 0, 0, 0, 0, 0, 0])
    visible = torch.tensor([True] * 7 + [False] * 2)
    assert kurtosis(row, visible, **KEYS).isnan()
    assert kurtosis(row, visible, minimum_keys=7).isfinite()


def test_half_precision_rows_are_measured_in_single():
    row = torch.softmax(torch.randn(512, generator=torch.Generator().manual_seed(1)), -1)
    low = kurtosis(row.bfloat16(), everything(row), **KEYS)
    assert low.dtype == torch.float32
    assert low.item() == pytest.approx(kurtosis(row, everything(row), **KEYS).item(), rel=0.05)


def test_kurtosis_gradient_matches_finite_differences():
    logits = torch.randn(2, 12, dtype=torch.float64, requires_grad=True)
    visible = torch.ones(2, 12, dtype=torch.bool)
    visible[1, 9:] = False
    assert torch.autograd.gradcheck(
        lambda x: kurtosis(torch.softmax(x, -1), visible, **KEYS), logits
    )


def test_undefined_kurtosis_sends_no_gradient():
    row = torch.full((2, 9), 1 / 9, requires_grad=True)
    visible = torch.tensor([[True] * 9, [True] * 3 + [False] * 6])
    kappa = kurtosis(row, visible, **KEYS)
    kappa[~kappa.isnan()].sum().backward()
    assert row.grad is not None
    assert row.grad.isfinite().all()


def test_log_kurtosis_counts_flat_rows_as_zero():
    kappa = torch.tensor([-2.0, 0.0, 9.0, 999.0, torch.nan])
    expected = torch.tensor([0.0, 0.0, 1.0, 3.0, torch.nan])
    torch.testing.assert_close(log_kurtosis(kappa), expected, equal_nan=True)


def test_dropped_sink_leaves_a_distribution_over_the_others():
    rows = torch.tensor([[0.9, 0.05, 0.03, 0.02], [0.0, 0.5, 0.5, 0.0]])
    visible = torch.tensor([[True, True, True, False], [True, True, True, True]])
    sinks = torch.tensor([True, False, False, False])
    kept_rows, kept = drop_sinks(rows, visible, sinks)
    torch.testing.assert_close(kept_rows[0], torch.tensor([0.0, 0.625, 0.375, 0.0]))
    torch.testing.assert_close(kept_rows[1], rows[1])
    assert kept.tolist() == [[False, True, True, False], [False, True, True, True]]


def test_row_resting_wholly_on_the_sink_becomes_zero():
    rows = torch.tensor([[1.0, 0.0, 0.0]])
    kept_rows, _ = drop_sinks(rows, torch.ones(1, 3, dtype=torch.bool), torch.arange(3) == 0)
    assert kept_rows.tolist() == [[0.0, 0.0, 0.0]]


def test_score_is_eq_1_written_as_a_slow_loop():
    generator = torch.Generator().manual_seed(3)
    B, H, Q, K, d = 2, 3, 4, 20, 5
    rows = torch.softmax(3 * torch.randn(B, H, Q, K, generator=generator), -1)
    writes = torch.randn(B, H, Q, d, generator=generator)
    anchor = torch.randn(B, d, generator=generator)
    visible = torch.ones(B, 1, Q, K, dtype=torch.bool)
    score = coarse_score(kurtosis(rows, visible, **KEYS), anchor_alignment(writes, anchor))
    for b in range(B):
        for h in range(H):
            for q in range(Q):
                a = rows[b, h, q].double().numpy()
                w, c = writes[b, h, q].double().numpy(), anchor[b].double().numpy()
                cosine = float(w @ c) / math.sqrt(float(w @ w) * float(c @ c))
                expected = scipy.stats.kurtosis(a) * cosine
                assert score[b, h, q].item() == pytest.approx(expected, rel=1e-4)


def test_attention_mass_of_a_set_and_of_none():
    rows = torch.tensor([[[[0.1, 0.2, 0.7]], [[0.6, 0.3, 0.1]]]])  # [1, 2, 1, 3]
    keys = torch.tensor([[[False, True, True]]])
    assert attention_mass(rows, keys)[0, :, 0].tolist() == pytest.approx([0.9, 0.4])
    assert attention_mass(rows, torch.zeros_like(keys)).isnan().all()
