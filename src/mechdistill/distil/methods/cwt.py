"""CWT (chunk-wise training of Skip-Thinking), adapted: a step learns one chunk of a rationale.

Original (EMNLP 2025): a rationale is cut into chunks, by average length (AC) or by a search that
moves the boundaries with the student's loss as heuristic (SBC); each iteration learns one chunk
behind the true text before it, since one long rationale smooths the gradients of its few core
tokens away. Its second stage (skipping chunks at inference) is not among the compared methods. No
official code was found.

Adapted: chunks are made of whole steps of the reasoning, the label list is the last chunk. Every
chunk of a trace is a training sequence that ends with it; an epoch shows each once. The boundaries
are searched once, with the student at step 0.

Not known: number of chunks, learning rate, schedule, how often boundaries are searched again. By
its nature a step has fewer tokens with a loss than that of other methods: the budget says how many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mechdistill.distil.batch import TeacherTokens, TrainingBatch
from mechdistill.distil.chunks import Array, average_cuts, searched_cuts
from mechdistill.distil.history import Term
from mechdistill.distil.likelihood import token_losses
from mechdistill.distil.method import Material, Method, StepInputs
from mechdistill.distil.sequences import TrainingSequence, usable, whole_trace
from mechdistill.distil.steps import reasoning_steps
from mechdistill.traces.parse import Trace


class Cwt(Method):
    """Token supervision on one chunk; distribution matching only if `with_kl`."""

    name = "cwt"
    parameters = (
        "distil.lambda_kl",
        "distil.cwt.chunks",
        "distil.cwt.chunker",
        "distil.cwt.with_kl",
    )
    settings_tried = (
        {},
        {"distil.cwt.chunks": 2},
        {"distil.cwt.chunks": 3},
        {"distil.cwt.chunker": "average"},
    )

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._chunks = int(settings["distil.cwt.chunks"])
        self._chunker = settings["distil.cwt.chunker"]
        self._with_kl = bool(settings["distil.cwt.with_kl"])

    def read(self, material: Material) -> None:
        """The tokenizer, for the steps, and the student at step 0, for its losses."""
        self._material = material

    def prepare(self, traces: Sequence[Trace]) -> list[TrainingSequence]:
        """One sequence a chunk."""
        used = [trace for trace in traces if usable(trace)]
        losses: Sequence[Array | None] = [None] * len(used)
        if self._chunker == "search" and self._chunks > 2 and used:
            sequences = [whole_trace(trace) for trace in used]
            losses = token_losses(self._material.model, sequences, self._material.pad_id)
        return [chunk for pair in zip(used, losses) for chunk in self._cut(*pair)]

    def loss(self, step: StepInputs) -> dict[str, Term]:
        """L_CoT of the chunk, as the original without the teacher's distributions."""
        terms = super().loss(step)
        if not self._with_kl:
            del terms["cot_kl"]
        return terms

    def sizes(self, batch: TrainingBatch, tokens: TeacherTokens) -> dict[str, float]:
        """Those of its terms."""
        sizes = super().sizes(batch, tokens)
        return sizes if self._with_kl else {"cot_nll": sizes["cot_nll"]}

    def _cut(self, trace: Trace, losses: Array | None) -> list[TrainingSequence]:
        begin, stop = trace.prompt_length, len(trace.tokens)
        cuts = [begin]
        if self._chunks > 1:
            units = [step.start for step in reasoning_steps(trace, self._material.tokenizer)]
            end = trace.reasoning_end
            cuts = average_cuts(units, end, self._chunks - 1)
            if losses is not None:
                cuts = searched_cuts(cuts, units, end, losses[: end - begin], begin)
            cuts.append(end)
        return [chunk_of(trace, a, b) for a, b in zip(cuts, [*cuts[1:], stop])]


def chunk_of(trace: Trace, start: int, end: int) -> TrainingSequence:
    """The trace up to a chunk [start, end), whose tokens alone are predicted."""
    predicting = tuple(range(start - 1, end - 1))
    first = trace.prompt_length - 1
    return TrainingSequence(
        example=trace.example,
        tokens=tuple(trace.tokens[:end]),
        predicting=predicting,
        weights=(1.0,) * len(predicting),
        teacher_rows=tuple(position - first for position in predicting),
    )
