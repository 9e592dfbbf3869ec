"""The loss that every method shares: L_CoT of App. B, token supervision and distribution matching.

As printed it is a sum over the tokens of a trace; here it is a mean over tokens, so that the weight
of other terms beside it does not depend on the length of traces.
"""

from __future__ import annotations

import torch
from torch import Tensor

NEVER = -1e9
"""Log-probability of an empty bucket; finite, since 0 * -inf and its gradient are not numbers."""


def token_log_probabilities(logits: Tensor) -> Tensor:
    """Log-softmax over the vocabulary in fp32. logits [..., V] -> [..., V]."""
    return torch.log_softmax(logits.float(), dim=-1)


def negative_log_likelihood(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """-log p_S(t) of each label. log_probabilities [N, V], labels [N] -> [N], in nats."""
    return -log_probabilities.gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def remainder(log_probabilities: Tensor, kept: Tensor) -> Tensor:
    """Log of the mass outside the kept tokens.

    log_probabilities [N, V], kept [N, k] token ids -> [N]; NEVER where all V tokens are kept.
    Summed over what is left rather than 1 - sum(kept): that difference has no correct digit where
    a model is sure.
    """
    rest = log_probabilities.scatter(-1, kept, NEVER).logsumexp(-1)
    return rest.clamp(min=NEVER)


def top_k_with_remainder(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """What is cached of a teacher's distribution: its k likeliest tokens and the lumped rest.

    logits [N, V] -> token ids [N, k] and log-probabilities [N, k + 1], likeliest first, the last
    column being the remainder's. k is cut to V.
    """
    log_probabilities = token_log_probabilities(logits)
    values, kept = log_probabilities.topk(min(k, logits.shape[-1]), dim=-1)
    rest = remainder(log_probabilities, kept)
    return kept, torch.cat([values, rest.unsqueeze(-1)], dim=-1)


def forward_kl(log_probabilities: Tensor, kept: Tensor, teacher: Tensor) -> Tensor:
    """KL(p_T || p_S) at temperature 1 over the teacher's k likeliest tokens and one bucket.

    Lumping can only lower a divergence: the value is exact with k = V and a lower bound otherwise.

    Args:
        log_probabilities: the student's, [N, V].
        kept: token ids, [N, k].
        teacher: log-probabilities of the kept tokens and the remainder, [N, k + 1].

    Returns:
        [N], in nats.
    """
    student = torch.cat(
        [
            log_probabilities.gather(-1, kept),
            remainder(log_probabilities, kept).unsqueeze(-1),
        ],
        dim=-1,
    )
    return (teacher.exp() * (teacher - student)).sum(-1)


def weighted_mean(values: Tensor, weights: Tensor) -> Tensor:
    """sum(w v) / sum(w) over all tokens of a batch; 0 where no token carries weight."""
    return (weights * values).sum() / weights.sum().clamp(min=torch.finfo(values.dtype).tiny)
