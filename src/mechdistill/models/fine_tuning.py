"""A checkpoint learns the reasoning: few steps on fresh notes with templated traces.

With LoRA the model's own weights stay as they are and small changes beside them are trained, then
merged; every later rule sees plain weights. A fine-tuning that was killed goes on from its last
checkpoint and ends in the same weights, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from mechdistill.errors import InputError
from mechdistill.models.batching import left_pad
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.optimiser import ScheduledOptimiser, adamw
from mechdistill.models.read_out import logits_where
from mechdistill.models.validated_training import Validate, train_validated


class Lesson(NamedTuple):
    """Token ids of a prompt, of the trace that follows it, and the weight of each trace token."""

    prompt: list[int]
    trace: list[int]
    weights: list[float]


@dataclass(frozen=True)
class FineTuning:
    """The section `teacher.fine_tuning`."""

    steps: int
    batch_size: int
    texts_a_pass: int
    """Lessons in one forward and backward pass."""
    learning_rate: float
    warmup_steps: int
    clip: float
    """Largest gradient norm."""
    decision_weight: float
    """Of the loss at tokens that decide."""
    lora: Mapping[str, Any] | None
    """rank and alpha; None trains every weight."""
    precision: str
    """Of the products: float32 or bfloat16."""
    validate_every: int
    checkpoint_every: int
    target_micro_f1: float
    """Validation micro-F1 that the teacher must reach."""

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> FineTuning:
        """From the parameters' section, all of whose keys are needed."""
        return cls(**section)


def trace_loss(model: Any, lessons: Sequence[Lesson], pad_id: int) -> Tensor:
    """Cross-entropy of the trace tokens of all lessons, prompts given, weighted and summed.

    Logits are computed where a trace token is predicted.
    """
    batch = left_pad([[*lesson.prompt, *lesson.trace] for lesson in lessons], pad_id)
    ids, mask = batch.ids[:, :-1], batch.mask[:, :-1]
    lengths = torch.tensor([len(lesson.trace) for lesson in lessons])
    learnt = torch.arange(ids.shape[1]) >= ids.shape[1] - lengths[:, None]
    logits = logits_where(model, ids, learnt, attention_mask=mask)
    weights = torch.tensor([weight for lesson in lessons for weight in lesson.weights])
    losses = functional.cross_entropy(logits.float(), batch.ids[:, 1:][learnt], reduction="none")
    return (weights * losses).sum()


def fine_tune(
    model: Any,
    draw: Callable[[np.random.Generator], Sequence[Lesson]],
    tuning: FineTuning,
    checkpoint: Checkpoint,
    validate: Validate,
    *,
    pad_id: int,
    seed: int,
) -> pd.DataFrame:
    """Fine-tune `model` in place and return its learning curve.

    Args:
        model: attached to the tap, at the checkpoint's weights.
        draw: the lessons of a step, from that step's own generator.
        validate: scores of the model in evaluation mode, by name.
        pad_id: of the tokenizer.
        seed: of the stream of lessons and of LoRA's first weights.

    Returns:
        step, metric, value: the scores before the first step (step 0); then the mean training loss
        since the last row, and the scores.
    """
    with _trained_weights(model, tuning.lora, seed) as trained:
        optimiser = ScheduledOptimiser(
            {"adamw": adamw(trained, tuning.learning_rate)},
            {"adamw": tuning.learning_rate},
            steps=tuning.steps,
            warmup_steps=tuning.warmup_steps,
        )

        def add_gradients(step: int) -> float:
            lessons = draw(np.random.default_rng([seed, 5, step]))
            return _add_gradients(model, lessons, tuning, pad_id)

        curve = train_validated(
            model,
            trained,
            optimiser,
            tuning,
            checkpoint,
            add_gradients,
            validate,
            scored_at_start=True,
            what="fine-tuning step",
        )
    model.eval()
    return curve


@contextmanager
def _trained_weights(
    model: Any, lora: Mapping[str, Any] | None, seed: int
) -> Iterator[nn.ParameterList]:
    """The weights to be trained; what was trained beside the model is merged when the block ends.

    Raises:
        InputError: LoRA is asked for and the package peft is not installed.
    """
    if lora is None:
        yield nn.ParameterList(model.parameters())
        return
    try:
        from peft import LoraConfig, inject_adapter_in_model
        from peft.tuners.lora import LoraLayer
    except ImportError as error:
        raise InputError(
            "teacher.fine_tuning.lora is given, and the package peft is not installed",
            "install it: python -m pip install --no-deps --require-hashes -r envs/pretrained.txt; "
            "or set teacher.fine_tuning.lora to null, which trains every weight",
        ) from error
    config = LoraConfig(
        r=lora["rank"], lora_alpha=lora["alpha"], lora_dropout=0.0, target_modules="all-linear"
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inject_adapter_in_model(config, model)
    yield nn.ParameterList(p for p in model.parameters() if p.requires_grad)
    for name, module in list(model.named_modules()):
        if isinstance(module, LoraLayer):
            module.merge()
            model.set_submodule(name, module.get_base_layer())
    model.requires_grad_(True)


def _add_gradients(model: Any, lessons: Sequence[Lesson], tuning: FineTuning, pad_id: int) -> float:
    """Add the gradients of the weighted mean over all trace tokens; returns that mean."""
    total = sum(sum(lesson.weights) for lesson in lessons)
    by_length = sorted(lessons, key=lambda lesson: len(lesson.prompt) + len(lesson.trace))
    mean = 0.0
    for start in range(0, len(by_length), tuning.texts_a_pass):
        part = by_length[start : start + tuning.texts_a_pass]
        with torch.autocast("cpu", torch.bfloat16, enabled=tuning.precision == "bfloat16"):
            loss = trace_loss(model, part, pad_id) / total
        loss.backward()  # type: ignore[no-untyped-call]
        mean += loss.item()
    return mean
