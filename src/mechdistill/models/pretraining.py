"""The from-scratch teacher: a small causal language model trained on notes and templated reasoning.

Each step draws fresh notes of training combinations from the world, as a function of the step's
number alone; the loss is taken on the reasoning. A training that was killed goes on from its
checkpoint and ends in the same weights, bit for bit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedTokenizerFast

from mechdistill.data.candidates import CandidateLists, relisted
from mechdistill.data.examples import example_of
from mechdistill.data.labels import LabelSpace
from mechdistill.data.tokenizer import encode_prompt, encode_trace
from mechdistill.data.world import WorldSettings, draw_case, draw_listing
from mechdistill.errors import InputError
from mechdistill.models.batching import pad_right
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.optimiser import Optimiser
from mechdistill.models.read_out import logits_where
from mechdistill.models.validated_training import Validate, train_validated

MAX_POSITIONS = 512
TEXTS_A_PASS = 20


class Text(NamedTuple):
    """Token ids of a prompt and of the trace that follows it and is learnt."""

    prompt: list[int]
    trace: list[int]


@dataclass(frozen=True)
class TeacherTraining:
    """The section `teacher.training`."""

    steps: int
    batch_size: int
    learning_rate: float
    """Peak rate of Muon."""
    adamw_learning_rate: float
    warmup_steps: int
    clip: float
    """Largest gradient norm."""
    listing_share: float
    """Share of a batch that are candidate lists to be read out, without a note."""
    validate_every: int
    checkpoint_every: int
    target_micro_f1: float
    """Validation micro-F1 that the trained teacher must reach."""

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> "TeacherTraining":
        """From the parameters' section, all of whose keys are needed."""
        return cls(**section)


def draw_texts(
    space: LabelSpace,
    settings: WorldSettings,
    tokenizer: PreTrainedTokenizerFast,
    lists: Sequence[CandidateLists],
    count: int,
    listing_share: float,
    rng: np.random.Generator,
) -> list[Text]:
    """Fresh training notes with their reference traces, and candidate lists to be read out.

    `lists` are kinds of candidate lists, one drawn for each note; none leaves those of the world.

    Listings make the model look up pairs in the list: in traces alone it names gold codes from
    their cues and near-misses at random for long.
    """
    listings = round(listing_share * count)
    words = [draw_listing(space, settings, rng) for _ in range(listings)]
    cases = [draw_case(space, settings, "training", rng) for _ in range(count - listings)]
    pairs = [(" ".join(prompt), " ".join(listing)) for prompt, listing in words]
    notes = [relisted(example_of(case, "", "training"), lists, rng) for case in cases]
    pairs += [(note.prompt, note.reference) for note in notes]
    return [Text(encode_prompt(tokenizer, a), encode_trace(tokenizer, b, a)) for a, b in pairs]


def add_gradients(model: Any, texts: Sequence[Text]) -> float:
    """Add the gradients of the mean cross-entropy over all trace tokens; returns that mean.

    Texts of like length are taken together, which saves padding.
    """
    total = sum(len(text.trace) for text in texts)
    by_length = sorted(texts, key=lambda text: len(text.prompt) + len(text.trace))
    mean = 0.0
    for start in range(0, len(by_length), TEXTS_A_PASS):
        loss = summed_trace_loss(model, by_length[start : start + TEXTS_A_PASS]) / total
        loss.backward()  # type: ignore[no-untyped-call]
        mean += loss.item()
    return mean


def summed_trace_loss(model: Any, texts: Sequence[Text]) -> Tensor:
    """Cross-entropy summed over the trace tokens of all texts, prompts given.

    Texts are padded on the right, where causal attention never looks; logits are computed at the
    trace's positions alone.
    """
    ids = pad_right([[*text.prompt, *text.trace] for text in texts], 0)
    starts = torch.tensor([len(text.prompt) for text in texts])[:, None]
    ends = starts + torch.tensor([len(text.trace) for text in texts])[:, None]
    positions = torch.arange(1, ids.shape[1])[None]
    predicted = (positions >= starts) & (positions < ends)  # of token p by the state at p - 1
    logits = logits_where(model, ids[:, :-1], predicted)
    return functional.cross_entropy(logits, ids[:, 1:][predicted], reduction="sum")


def train_teacher(
    model: Any,
    draw: Callable[[np.random.Generator], Sequence[Text]],
    training: TeacherTraining,
    checkpoint: Checkpoint,
    validate: Validate,
    seed: int,
) -> pd.DataFrame:
    """Train `model` in place and return its learning curve.

    Args:
        model: at its initial weights, also when there is a checkpoint to go on from.
        draw: the texts of a step, from that step's own generator.
        validate: scores of the model in evaluation mode, by name.
        seed: of the stream of texts.

    Returns:
        step, metric, value: the mean training loss since the last row, and the scores.
    """
    optimiser = Optimiser(
        model,
        learning_rate=training.learning_rate,
        adamw_learning_rate=training.adamw_learning_rate,
        steps=training.steps,
        warmup_steps=training.warmup_steps,
    )
    return train_validated(
        model,
        model,
        optimiser,
        training,
        checkpoint,
        lambda step: add_gradients(model, draw(np.random.default_rng([seed, 4, step]))),
        validate,
        scored_at_start=False,
        what="teacher step",
    )


def require_score(curve: pd.DataFrame, metric: str, section: str, target: float) -> None:
    """Make sure that the last value of a metric reaches its target.

    Args:
        section: of the parameters, which holds `steps` and the target.

    Raises:
        InputError: it does not; a study must not be built on a teacher that cannot do the task.
    """
    reached = float(curve.loc[curve["metric"] == metric, "value"].iloc[-1])
    if reached < target:
        raise InputError(
            f"the teacher's validation {metric} is {reached:.3f} after training, "
            f"{section}.target_{metric} is {target}",
            f"raise {section}.steps, or make the world or the target smaller",
        )
