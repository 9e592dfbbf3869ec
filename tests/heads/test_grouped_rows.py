import torch
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.heads.grouped_rows import group_rows


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


def test_one_token_a_group_changes_nothing() -> None:
    rows = torch.rand(2, 3, 5).softmax(-1)
    found = group_rows(rows, torch.arange(5).expand(2, -1), 5)
    assert torch.equal(found[..., :5], rows)
    assert not found[..., 5].any()


def test_gradients_are_those_of_finite_differences() -> None:
    rows = torch.rand(1, 2, 6, dtype=torch.float64, requires_grad=True)
    groups = torch.tensor([[-1, 0, 0, 1, 2, -1]])
    assert torch.autograd.gradcheck(lambda x: group_rows(x, groups, 3).square(), (rows,))
