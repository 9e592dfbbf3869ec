"""How likely a model finds the predicted tokens of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from mechdistill.distil.batch import collate
from mechdistill.distil.cot_loss import negative_log_likelihood, token_log_probabilities
from mechdistill.distil.forward import run
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.progress import track

BATCH = 40


@torch.no_grad()
def token_losses(
    model: Any, sequences: Sequence[TrainingSequence], pad_id: int
) -> list[npt.NDArray[np.float64]]:
    """Negative log-likelihood, in nats, of each predicted token of each sequence, in order.

    The model is read as in evaluation and left in the mode it was in.
    """
    training = model.training
    model.eval()
    # like lengths together: less padding
    order = sorted(range(len(sequences)), key=lambda i: (len(sequences[i].tokens), i))
    found: dict[int, npt.NDArray[np.float64]] = {}
    for start in track(range(0, len(order), BATCH), f"likelihood, batch of {BATCH}"):
        chosen = order[start : start + BATCH]
        batch = collate([sequences[i] for i in chosen], pad_id, ())
        logs = token_log_probabilities(run(model, batch).logits)
        losses = negative_log_likelihood(logs, batch.labels).double().numpy()
        counts = np.cumsum([len(sequences[i].predicting) for i in chosen])
        found |= dict(zip(chosen, np.split(losses, counts[:-1])))
    model.train(training)
    return [found[i] for i in range(len(sequences))]
