"""SemCoT, adapted (`semcot_student`): implicit positions before an explicit trace.

Original (NeurIPS 2025; official code YinhanHe123/SemCoT): a small model writes N implicit tokens
from which the large, frozen model answers; no reasoning is written. A sentence encoder, made of
upper layers of the large model, learns by contrast to find the condensed form of a reasoning
(written by a second model, at most ten words); then the small model is trained so that the encoder
sees the reasoning in the implicit tokens: alpha (1 - cos(E(implicit), E(reasoning))) + (1 - alpha)
CE(answer).

Adapted: the student itself reads N implicit positions behind the prompt, and then writes the
reasoning and the labels, so that every measure stays defined; its hidden states there, mapped to
the teacher's width, are what the encoder sees: alpha (1 - cos(E(W h), E(reasoning))) + (1 - alpha)
L_CoT. The condensed form is cut out by rule (overview, and verdicts up to their label), so that no
text is generated. All weights of the student are trained, not one embedding. The implicit token is
the tokenizer's token for unknown text, which no note holds. N is the same in training and use.

Not known: how the original was compared by measures that need a written reasoning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from mechdistill.distil.history import Term
from mechdistill.distil.method import Material, Method, StepInputs, Student
from mechdistill.distil.reasoning_encoder import read_encoder
from mechdistill.distil.sequences import TrainingSequence, usable, whole_trace
from mechdistill.errors import InputError
from mechdistill.traces import implicit
from mechdistill.traces.parse import Trace

MAP = "implicit_map"
"""Name under which W is a part of the student while it is trained."""


class Semcot(Method):
    """alpha (1 - cos(E(W h), E(reasoning))) + (1 - alpha) L_CoT."""

    name = "semcot"
    divisible = False  # its map and its encoder are no parts of the model whose passes are shared
    parameters = ("distil.lambda_kl", "distil.semcot.alpha", "distil.semcot.positions")
    needs = ("reasoning_encoder",)
    settings_tried = (
        {},
        {"distil.semcot.alpha": 0.25},
        {"distil.semcot.alpha": 0.75},
        {"distil.semcot.positions": 1},
    )

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._alpha = float(settings["distil.semcot.alpha"])
        self._positions = int(settings["distil.semcot.positions"])

    def read(self, material: Material) -> None:
        """The frozen encoder and what it makes of each reasoning; the implicit token.

        Raises:
            InputError: the tokenizer has no token for unknown text.
        """
        token = material.tokenizer.unk_token_id
        if token is None:
            raise InputError(
                "the tokenizer has no token for unknown text, which semcot thinks at",
                "give the tokenizer an unk_token, or leave semcot out of distil.methods",
            )
        self._tokens = (int(token),) * self._positions
        encoded = read_encoder(material.files["reasoning_encoder"])
        self._encoder, self._embeddings = encoded.encoder, encoded.embeddings

    def prepare(self, traces: Sequence[Trace]) -> list[TrainingSequence]:
        """Whole traces behind the implicit positions, which are read and not predicted."""
        used = [trace for trace in traces if usable(trace)]
        self._first = {trace.example: trace.prompt_length for trace in used}
        return [whole_trace(implicit.inserted(trace, self._tokens)) for trace in used]

    def start(self, student: Student, sequences: Sequence[TrainingSequence]) -> None:
        """Let the configuration say what the student reads, and give it W."""
        setattr(student.model.config, implicit.KEY, list(self._tokens))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            drawn = nn.Linear(student.model.config.hidden_size, self._encoder.width, bias=False)
        student.model.add_module(MAP, drawn)
        self._map = drawn

    def finish(self, model: Any) -> None:
        """W is of no use any more."""
        delattr(model, MAP)

    def loss(self, step: StepInputs) -> dict[str, Term]:
        """L_CoT's terms, and how far the implicit positions are from the reasoning."""
        terms = {
            name: term._replace(weight=(1 - self._alpha) * term.weight)
            for name, term in super().loss(step).items()
        }
        return {**terms, "implicit_alignment": Term(self._alignment(step), self._alpha)}

    def _alignment(self, step: StepInputs) -> Tensor:
        """Mean over examples of 1 - cos(E(W h), E(reasoning))."""
        batch = step.batch
        first = torch.tensor([self._first[name] for name in batch.examples])
        at = (batch.padded.offset + first)[:, None] + torch.arange(self._positions)
        hidden = step.passed.hidden.float()
        states = hidden.gather(1, at[..., None].expand(-1, -1, hidden.shape[-1]))
        seen = self._encoder(self._map(states), torch.ones_like(at))
        wanted = torch.stack([self._embeddings[name] for name in batch.examples])
        return (1 - cosine_similarity(seen, wanted, dim=-1)).mean()
