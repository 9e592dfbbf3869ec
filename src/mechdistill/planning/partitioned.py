"""What a student costs whose training is partitioned over processes (DeepSpeed's ZeRO-3).

Not measured on GPUs: the bytes follow from what the engine holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from mechdistill.planning.sizes import Model
from mechdistill.study import DeepSpeed

STATE_BYTES = 16
"""A parameter's weight, gradient, fp32 copy and two moments; in float32 the copy is the weight."""
WHOLE_BYTES = 4
"""A parameter in fp32: each process holds the student whole before it is partitioned."""
RESULT_BYTES = 8
"""A parameter of the result in the first process: brought together, and read back."""
LAYER_ACTIVATIONS = 34
"""Numbers of `hidden` a token that a layer keeps for its backward pass."""
AT_WORK = 2
"""Layers whose weights are whole at a time: the one at work and the one fetched beside it."""
MOST_PROCESSES = 1024


@dataclass(frozen=True)
class Partition:
    """Of one training: processes (one a GPU), bytes of each one's GPU, bytes of the machine."""

    processes: int
    device: float
    host: float


def partition(
    model: Model,
    settings: DeepSpeed,
    *,
    batch_size: int,
    text: float,
    learnt: float,
    room: float,
    logit_bytes: int,
) -> Partition:
    """The fewest processes that share the batch out evenly and fit their GPUs.

    Args:
        batch_size: sequences of a step.
        text, learnt: tokens of a sequence, and those of them that are learnt.
        room: bytes of a GPU; infinite where there is none, then one process does it.
        logit_bytes: of a logit in training.

    Returns:
        with as many processes as the batch allows where it fits none: `device` is then beyond
        `room`.
    """
    width = 4 if settings.precision == "float32" else 2
    layer = (model.multiplied - model.hidden * model.vocabulary) / model.layers
    # embedding and unembedding are gathered whole as well; gradients beside weights
    gathered = 2 * width * (AT_WORK * layer + 2 * model.hidden * model.vocabulary)
    kept = (
        LAYER_ACTIVATIONS + model.layers
        if settings.gradient_checkpointing
        else (LAYER_ACTIVATIONS * model.layers)
    )
    tokens = settings.micro_batch * text
    passed = tokens * kept * model.hidden * width
    logits = settings.micro_batch * learnt * model.vocabulary * logit_bytes
    states = STATE_BYTES * model.parameters
    passes = batch_size // settings.micro_batch
    for count in (n for n in range(1, min(passes, MOST_PROCESSES) + 1) if passes % n == 0):
        own = gathered + passed + logits + (0 if settings.offload else states / count)
        if own <= room:
            break
    aside = states if settings.offload else 0
    host: float = (WHOLE_BYTES * count + RESULT_BYTES) * model.parameters + aside
    if room == float("inf"):  # the processor holds what a GPU would
        host += own
    return Partition(count, own, host)
