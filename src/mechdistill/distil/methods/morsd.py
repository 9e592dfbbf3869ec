"""MoRSD (model-oriented rationale selection), adapted: L_CoT on chosen rationales.

Original (Findings of EMNLP 2025): several rationales a question are sampled from a teacher that is
shown the gold answer; those that do not support it are dropped, then near-duplicates, then those
that are hard for the student: Rationale Difficulty compares how likely the student finds the
answer with and without the rationale. The student is fine-tuned on what is left.

Adapted: the teacher does not see the gold answer; candidates are the greedy trace (which every
method trains on) and sampled ones; a rationale is right if the F1 of its label list against the
gold labels is high enough; RD(r) = PPL(a | q, r) / PPL(a | q) with the student at step 0 and the
rationale's own label list as a. All students take the same number of steps, so fewer rationales
are seen more often.

Not known: number of samples, temperature, thresholds and the exact RD of the original. Those here
are ours. More texts of the teacher are part of the method: the budget counts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mechdistill.artifacts import how_to_make, read_table
from mechdistill.distil.method import Material, Method
from mechdistill.distil.samples import read_samples, sample_name, whole_sample
from mechdistill.distil.selection import Candidate, easy, right, unlike
from mechdistill.distil.sequences import TrainingSequence, usable
from mechdistill.distil.targets import Targets, read_targets
from mechdistill.errors import InputError
from mechdistill.traces.parse import Trace


class Morsd(Method):
    """L_CoT on right, unlike and easy rationales."""

    name = "morsd"
    parameters = (
        "distil.lambda_kl",
        "distil.morsd.least_f1",
        "distil.morsd.keep_min",
        "distil.morsd.most_alike",
        "distil.morsd.difficulty",
        "distil.morsd.share",
    )
    needs = ("samples", "sample_targets", "difficulty")
    settings_tried = (
        {},
        {"distil.morsd.share": 0.25},
        {"distil.morsd.share": 0.75},
        {"distil.morsd.difficulty": "band"},
    )

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._least_f1 = float(settings["distil.morsd.least_f1"])
        self._keep_min = int(settings["distil.morsd.keep_min"])
        self._most_alike = float(settings["distil.morsd.most_alike"])
        self._mode = settings["distil.morsd.difficulty"]
        self._share = float(settings["distil.morsd.share"])

    def read(self, material: Material) -> None:
        """The sampled traces, the teacher on them, and how hard the student finds all of them."""
        self._samples = read_samples(material.files["samples"])
        self._sample_targets = read_targets(material.files["sample_targets"])
        self._path = material.files["difficulty"]
        table = read_table(self._path, ["example", "draw", "f1", "difficulty"])
        self._scores = {
            (row["example"], row["draw"]): (row["f1"], row["difficulty"])
            for row in table.to_dict("records")
        }

    def prepare(self, traces: Sequence[Trace]) -> list[TrainingSequence]:
        """Whole traces of the chosen draws, in the order of examples and draws."""
        drawn = [(0, trace) for trace in traces] + self._samples
        candidates = {
            sample_name(trace.example, draw): (draw, trace)
            for draw, trace in drawn
            if usable(trace)
        }
        scored = [self._candidate(draw, trace) for draw, trace in candidates.values()]
        unlike_ones = unlike(right(scored, self._least_f1, self._keep_min), self._most_alike)
        chosen = easy(unlike_ones, self._share, self._mode) if unlike_ones else []
        chosen.sort(key=lambda c: (c.example, c.draw))
        return [whole_sample(*candidates[sample_name(c.example, c.draw)]) for c in chosen]

    def targets(self, targets: Targets) -> Targets:
        """Those of the sampled traces beside those of the greedy ones."""
        return replace(targets, examples={**targets.examples, **self._sample_targets.examples})

    def further_generations(self) -> int:
        """All that were sampled, chosen or not."""
        return len(self._samples)

    def _candidate(self, draw: int, trace: Trace) -> Candidate:
        try:
            f1, difficulty = self._scores[trace.example, draw]
        except KeyError:
            raise InputError(
                f"{self._path} has no row of {trace.example}, draw {draw}",
                how_to_make(self._path),
            ) from None
        reasoning = trace.tokens[trace.prompt_length : trace.reasoning_end]
        return Candidate(trace.example, draw, tuple(reasoning), f1, difficulty)
