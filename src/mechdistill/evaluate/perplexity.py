"""Perplexity of the teacher's trace under another model (Eq. 10)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

IGNORED = -100
"""Target of positions that do not count: the prompt and padding."""


def negative_log_likelihood(logits: Tensor, targets: Tensor) -> Tensor:
    """Summed NLL [B] in nats of the counted targets, in float64.

    Args:
        logits: [B, T, V], position t predicting target t.
        targets: [B, T] token ids, `IGNORED` where nothing is to be predicted.
    """
    losses = torch.nn.functional.cross_entropy(
        logits.double().flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return losses.view(targets.shape).sum(-1)


def perplexity(
    nll: npt.NDArray[np.float64], tokens: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """exp(NLL per token) of summed NLL and token counts; nan where there are no tokens.

    Sums over a whole split give its token-pooled perplexity, which is not the mean of the
    documents' perplexities.
    """
    none = tokens == 0
    value: npt.NDArray[np.float64] = np.where(
        none, np.nan, np.exp(nll / np.where(none, 1.0, tokens))
    )
    return value
