"""Rows over groups of tokens: of any groups, and of those that two tokenizers share."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mechdistill.data.alignment import align
from mechdistill.data.token_ends import ends_in_text
from mechdistill.heads.grouped_rows import group_rows
from tests.data.test_token_ends import TOKENIZERS, any_text


@given(seed=st.integers(0, 999), count=st.integers(1, 5))
def test_the_mass_of_a_group_is_the_sum_over_its_tokens(seed, count) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.rand(2, 3, 7, generator=generator).softmax(-1)
    groups = torch.randint(-1, count, (2, 7), generator=generator)
    found = group_rows(rows, groups, count)
    assert found.shape == (2, 3, count + 1)
    for b in range(2):
        for q in range(3):
            for group in range(count + 1):
                tokens = [k for k in range(7) if groups[b, k] % (count + 1) == group]
                torch.testing.assert_close(found[b, q, group], rows[b, q, tokens].sum())
    torch.testing.assert_close(found.sum(-1), rows.sum(-1))


@pytest.mark.parametrize("names", [*pairwise(TOKENIZERS), *((name, name) for name in TOKENIZERS)])
@given(text=any_text.filter(str.strip), seed=st.integers(0, 999))
@hypothesis_settings(max_examples=25)
def test_rows_of_both_tokenizers_keep_their_mass_on_the_same_groups(names, text, seed) -> None:
    """At every shared position; with one tokenizer the rows of both are the tokens' own."""
    one, other = (
        ends_in_text(TOKENIZERS[name], text, add_special_tokens=True).filled() for name in names
    )
    found = align(one, other, one.special, other.special)
    queries = [list(found.queries), list(found.queries.values())]
    assert all(a < b for side in queries for a, b in pairwise(side))
    grouped = []
    for side, groups, at in zip((one, other), (found.first, found.second), queries):
        generator = torch.Generator().manual_seed(seed)
        logits = torch.randn(len(side), len(side), generator=generator)
        rows = logits.masked_fill(torch.ones(logits.shape).triu(1) > 0, -torch.inf).softmax(-1)
        grouped.append(group_rows(rows[None, at], torch.tensor([groups]), found.count)[0])
        torch.testing.assert_close(grouped[-1].sum(-1), torch.ones(len(at)))
    seen = [(rows[:, : found.count] > 0).tolist() for rows in grouped]
    assert seen[0] == seen[1]
    if names[0] == names[1]:
        assert torch.equal(*grouped)


def test_one_token_a_group_changes_nothing() -> None:
    rows = torch.rand(2, 3, 5).softmax(-1)
    found = group_rows(rows, torch.arange(5).expand(2, -1), 5)
    assert torch.equal(found[..., :5], rows)
    assert not found[..., 5].any()


def test_gradients_are_those_of_finite_differences() -> None:
    rows = torch.rand(1, 2, 6, dtype=torch.float64, requires_grad=True)
    groups = torch.tensor([[-1, 0, 0, 1, 2, -1]])
    assert torch.autograd.gradcheck(lambda x: group_rows(x, groups, 3).square(), (rows,))
