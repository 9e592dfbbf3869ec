"""A sentence encoder of reasonings, from upper layers of the teacher (SemCoT's first stage).

E(h) = projection of the mean over tokens of the layers' output on the stream h [T, d] that enters
them. It learns to find the condensed form of a reasoning among those of other reasonings, and is
frozen afterwards.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from mechdistill.artifacts import how_to_make, read_tensors, write_tensors
from mechdistill.distil.steps import reasoning_steps
from mechdistill.errors import InputError
from mechdistill.models.batching import left_pad
from mechdistill.models.residuals import reading_residuals
from mechdistill.models.upper_layers import UpperLayers, copy_of_layers
from mechdistill.progress import track
from mechdistill.traces.parse import Trace

HELD_OUT = 5
"""Every so many-th pair is left for validation."""


@dataclass(frozen=True)
class EncoderSettings:
    """The section `distil.semcot.encoder`."""

    layers: int
    """Of the teacher, copied; those from its middle on, fewer where it has fewer."""
    dimension: int
    """Of an embedding."""
    batch_size: int
    projection_epochs: int
    """With the layers as they are; all weights are trained afterwards."""
    projection_learning_rate: float
    epochs: int
    learning_rate: float

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> EncoderSettings:
        """From the parameters' section, all of whose keys are needed."""
        return cls(**section)


class ReasoningEncoder(nn.Module):
    """Streams [B, T, d] with a mask [B, T] to embeddings [B, dimension]."""

    def __init__(self, layers: UpperLayers, dimension: int) -> None:
        super().__init__()
        self.layers = layers
        self.projection = nn.Linear(layers.config["hidden_size"], dimension)

    @property
    def width(self) -> int:
        """d of the streams."""
        return int(self.layers.config["hidden_size"])

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        leaving = self.layers(states, mask)
        weights = mask[..., None].to(leaving.dtype)
        mean = (weights * leaving).sum(1) / weights.sum(1).clamp(min=1)
        embedding: Tensor = self.projection(mean)
        return embedding


@dataclass(frozen=True)
class EncodedReasonings:
    """The trained encoder, and the embedding of each training example's reasoning."""

    encoder: ReasoningEncoder
    embeddings: Mapping[str, Tensor]


def contrastive_loss(first: Tensor, second: Tensor) -> Tensor:
    """L_con = -mean_i log(exp(cos(u_i, v_i)) / sum_j exp(cos(u_i, v_j))), twice [B, D] -> scalar.

    One way, temperature 1; 0 for one pair.
    """
    cosines = normalize(first, dim=-1) @ normalize(second, dim=-1).T
    return -torch.log_softmax(cosines, dim=-1).diagonal().mean()


def condensed(trace: Trace, tokenizer: Any) -> tuple[int, ...]:
    """The short form of a reasoning by rule: its overview, and each verdict up to its label."""
    kept: list[int] = []
    for step in reasoning_steps(trace, tokenizer):
        if step.kind == "overview":
            kept += trace.tokens[step.start : step.end]
        elif step.kind == "verdict":
            ends = [m.end for m in trace.mentions if m.kind == "label" and step.start <= m.start]
            kept += trace.tokens[step.start : min([*ends, step.end])]
    return tuple(kept)


def train_encoder(
    teacher: Any, traces: Sequence[Trace], tokenizer: Any, settings: EncoderSettings
) -> tuple[EncodedReasonings, pd.DataFrame]:
    """The encoder of the best validation loss, and its learning curve.

    Args:
        teacher: in evaluation mode; left as it is.
        traces: with an answer, one an example.
        tokenizer: of the teacher.

    Returns:
        The encoder, and rows (stage, epoch, training, validation): mean losses; epoch 0 is before
        the stage.
    """
    middle = teacher.config.num_hidden_layers // 2
    count = min(settings.layers, teacher.config.num_hidden_layers - middle)
    detailed = [trace.tokens[trace.prompt_length : trace.reasoning_end] for trace in traces]
    pairs = [
        (_entering(teacher, long, middle), _entering(teacher, condensed(trace, tokenizer), middle))
        for trace, long in track(list(zip(traces, detailed)), "reasoning read")
    ]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = ReasoningEncoder(copy_of_layers(teacher, middle, count), settings.dimension)
    curve: list[dict[str, Any]] = []
    for stage, epochs, rate, weights, decay in (
        ("projection", settings.projection_epochs, settings.projection_learning_rate,
         list(encoder.projection.parameters()), 1e-3),
        ("all", settings.epochs, settings.learning_rate, list(encoder.parameters()), 1e-5),
    ):  # fmt: skip
        curve += _fit(encoder, pairs, settings.batch_size, stage, epochs, rate, weights, decay)
    encoder.requires_grad_(False).eval()
    embeddings: dict[str, Tensor] = {}
    for start in range(0, len(pairs), settings.batch_size):
        chosen = pairs[start : start + settings.batch_size]
        with torch.no_grad():
            found = encoder(*_padded([long for long, _ in chosen]))
        names = [trace.example for trace in traces[start : start + settings.batch_size]]
        embeddings |= dict(zip(names, found))
    return EncodedReasonings(encoder, embeddings), pd.DataFrame(curve)


def write_encoder(path: str | Path, encoded: EncodedReasonings) -> None:
    """One file: weights, configuration, embeddings."""
    names = list(encoded.embeddings)
    tensors = {f"encoder.{name}": value for name, value in encoded.encoder.state_dict().items()}
    tensors["embeddings"] = torch.stack([encoded.embeddings[name] for name in names])
    about = {
        "examples": json.dumps(names),
        "layers": json.dumps(encoded.encoder.layers.config, sort_keys=True),
        "dimension": str(tensors["embeddings"].shape[1]),
    }
    write_tensors(path, tensors, about)


def read_encoder(path: str | Path) -> EncodedReasonings:
    """What `write_encoder` wrote, frozen.

    Raises:
        InputError: the file is missing, damaged or no such encoder.
    """
    tensors, about = read_tensors(path)
    try:
        layers = UpperLayers(json.loads(about["layers"]))
        encoder = ReasoningEncoder(layers, int(about["dimension"]))
        own = {
            name.removeprefix("encoder."): value
            for name, value in tensors.items()
            if name.startswith("encoder.")
        }
        encoder.load_state_dict(own)
        embeddings = dict(zip(json.loads(about["examples"]), tensors["embeddings"], strict=True))
    except (KeyError, RuntimeError, ValueError) as error:
        raise InputError(
            f"{path} is no encoder of reasonings ({error})",
            how_to_make(path),
        ) from error
    return EncodedReasonings(encoder.requires_grad_(False).eval(), embeddings)


def _fit(
    encoder: ReasoningEncoder,
    pairs: Sequence[tuple[Tensor, Tensor]],
    batch_size: int,
    stage: str,
    epochs: int,
    rate: float,
    weights: list[nn.Parameter],
    decay: float,
) -> Iterator[dict[str, Any]]:
    """Train some weights, and leave the encoder as it was where validation was best."""
    held = [i for i in range(len(pairs)) if i % HELD_OUT == HELD_OUT - 1]
    trained = [i for i in range(len(pairs)) if i % HELD_OUT != HELD_OUT - 1]
    optimiser = torch.optim.AdamW(weights, lr=rate, weight_decay=decay)

    def losses(order: Sequence[int]) -> Iterator[Tensor]:
        for start in range(0, len(order), batch_size):
            chosen = [pairs[i] for i in order[start : start + batch_size]]
            first = encoder(*_padded([long for long, _ in chosen]))
            yield contrastive_loss(first, encoder(*_padded([short for _, short in chosen])))

    def validation() -> float:
        with torch.no_grad():
            found = [float(loss) for loss in losses(held)]
        return float(np.mean(found)) if found else 0.0

    best, kept = validation(), copy.deepcopy(encoder.state_dict())
    yield {"stage": stage, "epoch": 0, "training": None, "validation": best}
    for epoch in track(range(1, epochs + 1), f"encoder epoch ({stage})"):
        order = np.random.default_rng(epoch).permutation(trained)
        values = []
        for loss in losses(order.tolist()):
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            optimiser.zero_grad()
            encoder.zero_grad()
            values.append(loss.item())
        value = validation()
        yield {
            "stage": stage,
            "epoch": epoch,
            "training": float(np.mean(values)),
            "validation": value,
        }
        if value < best:
            best, kept = value, copy.deepcopy(encoder.state_dict())
    encoder.load_state_dict(kept)


@torch.no_grad()
def _entering(teacher: Any, tokens: Sequence[int], layer: int) -> Tensor:
    """The stream [T, d] that enters a layer when the teacher reads a text by itself."""
    with reading_residuals(teacher) as stream:
        teacher(torch.tensor([list(tokens)]), use_cache=False, logits_to_keep=1)
    return stream.entering[layer][0].float()


def _padded(states: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Streams of unequal length as one, padded on the left, and the mask."""
    batch = left_pad([[0] * len(of) for of in states], 0)
    padded = torch.zeros(*batch.ids.shape, states[0].shape[-1])
    for row, of in enumerate(states):
        padded[row, padded.shape[1] - len(of) :] = of
    return padded, batch.mask
