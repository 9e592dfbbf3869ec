"""L_CoT against torch's own functions and the properties of a lumped KL."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.distil.cot_loss import (
    forward_kl,
    negative_log_likelihood,
    token_log_probabilities,
    top_k_with_remainder,
    weighted_mean,
)


def random_logits(seed: int, n: int = 5, vocabulary: int = 11, scale: float = 3.0) -> torch.Tensor:
    return scale * torch.randn(n, vocabulary, generator=torch.Generator().manual_seed(seed))


def full_kl(teacher: torch.Tensor, student: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.kl_div(
        student.log_softmax(-1), teacher.log_softmax(-1), log_target=True, reduction="none"
    ).sum(-1)


def lumped_kl(teacher: torch.Tensor, student: torch.Tensor, k: int) -> torch.Tensor:
    kept, cached = top_k_with_remainder(teacher, k)
    return forward_kl(token_log_probabilities(student), kept, cached)


def test_negative_log_likelihood_is_cross_entropy() -> None:
    logits, labels = random_logits(0), torch.tensor([0, 3, 10, 3, 7])
    found = negative_log_likelihood(token_log_probabilities(logits), labels)
    expected = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(found, expected)


@given(seed=st.integers(0, 10_000), k=st.integers(1, 11))
def test_lumped_kl_never_exceeds_the_full_one(seed: int, k: int) -> None:
    teacher, student = random_logits(seed), random_logits(seed + 1)
    lumped, full = lumped_kl(teacher, student, k), full_kl(teacher, student)
    assert (lumped <= full + 1e-5).all()
    assert (lumped >= -1e-6).all()


def test_kl_over_the_whole_vocabulary_is_exact() -> None:
    teacher, student = random_logits(2), random_logits(3)
    torch.testing.assert_close(lumped_kl(teacher, student, 11), full_kl(teacher, student))


def test_k_beyond_the_vocabulary_is_cut() -> None:
    kept, cached = top_k_with_remainder(random_logits(4), 50)
    assert kept.shape == (5, 11)
    assert cached.shape == (5, 12)


def test_lumped_kl_by_hand() -> None:
    teacher = torch.tensor([[0.7, 0.2, 0.06, 0.04]]).log()
    student = torch.tensor([[0.5, 0.3, 0.1, 0.1]]).log()
    expected = 0.7 * torch.tensor(0.7 / 0.5).log() + 0.3 * torch.tensor(0.3 / 0.5).log()
    torch.testing.assert_close(lumped_kl(teacher, student, 1), expected.reshape(1))


def test_equal_distributions_have_no_kl_and_no_gradient() -> None:
    student = random_logits(5).requires_grad_()
    loss = lumped_kl(student.detach(), student, 3).sum()
    loss.backward()
    assert abs(loss.item()) < 1e-6
    assert student.grad is not None
    assert student.grad.abs().max() < 1e-6


def test_gradient_equals_finite_differences() -> None:
    teacher = random_logits(6)
    kept, cached = top_k_with_remainder(teacher, 3)

    def loss(logits: torch.Tensor) -> torch.Tensor:
        return forward_kl(torch.log_softmax(logits, -1), kept, cached.double()).sum()

    assert torch.autograd.gradcheck(loss, random_logits(7).double().requires_grad_())


def test_a_sure_teacher_and_a_sure_student_give_a_finite_gradient() -> None:
    teacher, student = torch.zeros(1, 4), torch.zeros(1, 4)
    teacher[0, 1], student[0, 1] = 200.0, 200.0
    student.requires_grad_()
    loss = lumped_kl(teacher, student, 2).sum() + lumped_kl(teacher, student, 4).sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert student.grad is not None
    assert torch.isfinite(student.grad).all()


@given(seed=st.integers(0, 10_000))
def test_unweighted_tokens_do_not_change_the_mean(seed: int) -> None:
    values = random_logits(seed, 1, 6)[0]
    weights = torch.tensor([1.0, 2.0, 0.0, 1.0, 0.0, 0.0])
    expected = (values[0] + 2 * values[1] + values[3]) / 4
    torch.testing.assert_close(weighted_mean(values, weights), expected)


def test_mean_over_no_token_is_zero() -> None:
    assert weighted_mean(torch.ones(3), torch.zeros(3)) == 0
