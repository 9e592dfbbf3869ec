"""UniCoTT, adapted: rationales as graphs of steps, contrasted and spread out beside L_CoT.

Original (ICLR 2025; formulas as public reviews of it give them): a teacher that is shown the gold
answer is prompted once for each node of a chain, tree or graph of explanations (7 nodes); an
encoder classifier learns L_cce + 0.5 L_nsc + 0.2 (L_sd + L_se), with a supervised contrast between
nodes of equal answer (L_nsc) and variance and covariance terms on the nodes weighted by their
relations (L_sd, L_se).

Adapted: nodes are steps of the one stored trace (overview, comparison and verdict of each clause),
so that all methods see the same text; a node is the mean of the student's last hidden states over
its tokens; nodes are alike if they name a label in common, and a step that names none takes the
labels of the trace's answer; the covariance is that of all nodes of a batch.

Not known: temperature, the least standard deviation, the choice of negatives, learning rate and
batch size of the original. Those here are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from mechdistill.distil.history import Term
from mechdistill.distil.method import Material, Method, StepInputs, Student
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.distil.steps import reasoning_steps
from mechdistill.distil.structure import (
    Rationale,
    chain,
    contrast,
    relation,
    sharing_a_label,
    spread,
    tree,
)
from mechdistill.traces.parse import Trace

WIDEST = 256
PROJECTED = 128
"""Hidden states wider than the first are projected to the second: a covariance of all dimensions of
a large model would be larger than its layers."""


class UniCoTT(Method):
    """L_CoT + contrast * L_nsc + spread * (L_sd + L_se)."""

    name = "unicott"
    divisible = False  # nodes of all rationales of a batch are contrasted
    parameters = (
        "distil.lambda_kl",
        "distil.unicott.structure",
        "distil.unicott.contrast",
        "distil.unicott.spread",
        "distil.unicott.temperature",
        "distil.unicott.least_std",
    )
    settings_tried = (
        {},
        {"distil.unicott.contrast": 0.1, "distil.unicott.spread": 0.04},
        {"distil.unicott.contrast": 1.0, "distil.unicott.spread": 0.4},
        {"distil.unicott.temperature": 0.5},
    )

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._structure = settings["distil.unicott.structure"]
        self._contrast = float(settings["distil.unicott.contrast"])
        self._spread = float(settings["distil.unicott.spread"])
        self._temperature = float(settings["distil.unicott.temperature"])
        self._least_std = float(settings["distil.unicott.least_std"])
        self._rationales: dict[str, Rationale] = {}
        self._fallbacks = 0

    def read(self, material: Material) -> None:
        """The tokenizer, which the steps are found with."""
        self._tokenizer = material.tokenizer

    def prepare(self, traces: Sequence[Trace]) -> list[TrainingSequence]:
        """Whole traces, and the graph of each."""
        sequences = super().prepare(traces)
        used = {sequence.example for sequence in sequences}
        self._fallbacks = 0
        for trace in traces:
            if trace.example in used:
                self._rationales[trace.example] = self._rationale(trace)
        return sequences

    def start(self, student: Student, sequences: Sequence[TrainingSequence]) -> None:
        """A fixed projection where the student is wide."""
        width = student.model.config.hidden_size
        self._projection: Tensor | None = None
        if width > WIDEST:
            generator = torch.Generator().manual_seed(0)
            drawn = torch.randn(width, PROJECTED, generator=generator)
            self._projection = drawn / width**0.5

    def loss(self, step: StepInputs) -> dict[str, Term]:
        """L_CoT's terms, the contrast of nodes and their spread."""
        rationales = [self._rationales[name] for name in step.batch.examples]
        nodes, structured = self._nodes(step, rationales)
        alike = sharing_a_label([labels for of in rationales for labels in of.labels])
        return {
            **super().loss(step),
            "node_contrast": Term(contrast(nodes, alike, self._temperature), self._contrast),
            "node_spread": Term(spread(structured, self._least_std), self._spread),
        }

    def left_out(self) -> tuple[str, ...]:
        """Traces whose steps are no tree."""
        if not self._fallbacks:
            return ()
        return (f"tree: {self._fallbacks} of {len(self._rationales)} traces are chains",)

    def _rationale(self, trace: Trace) -> Rationale:
        steps = reasoning_steps(trace, self._tokenizer)
        edges = tree(steps) if self._structure == "tree" else chain(steps)
        if edges is None:
            self._fallbacks += 1
            edges = chain(steps)
        answer = frozenset(trace.answer)
        return Rationale(
            spans=tuple((step.start, step.end) for step in steps),
            labels=tuple(frozenset(step.labels) or answer for step in steps),
            relation=relation(len(steps), edges),
        )

    def _nodes(self, step: StepInputs, rationales: Sequence[Rationale]) -> tuple[Tensor, Tensor]:
        """H and R H of all rationales of the batch, one below the other: twice [N, D].

        Hidden states are scaled to a root mean square of 1, as the read-out's norm does.
        """
        hidden = step.passed.hidden.float()
        hidden = hidden / (hidden.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        if self._projection is not None:
            hidden = hidden @ self._projection
        nodes, structured = [], []
        for row, (of, start) in enumerate(zip(rationales, step.batch.padded.offset.tolist())):
            own = torch.stack([hidden[row, start + a : start + b].mean(0) for a, b in of.spans])
            nodes.append(own)
            structured.append(of.relation @ own)
        return torch.cat(nodes), torch.cat(structured)
