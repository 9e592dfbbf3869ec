"""What a distillation method is: which sequences it trains on and which terms its loss has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from torch import Tensor

from mechdistill.distil.batch import TeacherSignals, TeacherTokens, TrainingBatch
from mechdistill.distil.cot_loss import (
    forward_kl,
    negative_log_likelihood,
    token_log_probabilities,
    weighted_mean,
)
from mechdistill.distil.forward import ForwardPass
from mechdistill.distil.history import Term
from mechdistill.distil.sequences import TrainingSequence, usable, whole_trace
from mechdistill.distil.targets import Targets
from mechdistill.heads.pools import Pools
from mechdistill.models.tap import Tap
from mechdistill.traces.parse import Trace


@dataclass(frozen=True)
class Student:
    """The student at step 0 and what is known about it."""

    model: Any
    pools: Pools
    """Heads that the student's own scores choose before training."""
    anchors: Mapping[str, Tensor]
    """c_anchor(x) of each example in the student's residual space at step 0, [d]."""
    teacher_pool_sizes: Mapping[int, int]
    """Heads in the teacher's pool of each phase."""
    minimum_keys: int
    """Visible keys that a row needs to have a kurtosis, as the teacher was read."""


@dataclass(frozen=True)
class Material:
    """What a method may prepare its sequences with."""

    tokenizer: Any
    model: Any
    """The student at step 0."""
    files: Mapping[str, Path]
    """The artifacts that the method `needs`, by name."""

    @property
    def pad_id(self) -> int:
        """Of the tokenizer."""
        return int(self.tokenizer.pad_token_id)


@dataclass(frozen=True)
class StepInputs:
    """All that the loss of one step may look at."""

    batch: TrainingBatch
    tokens: TeacherTokens
    signals: TeacherSignals | None
    """None unless the method taps the student."""
    passed: ForwardPass
    """The student's forward pass: logits, what the tap read."""
    shares: Mapping[str, float]
    """What this part of the step's batch has of each term that the batch has; 1 of a whole one."""


class WholeBatch(Protocol):
    """A step's batch, in however many parts it is processed."""

    def mean(self, terms: Callable[[StepInputs], Mapping[str, Tensor]]) -> dict[str, float]:
        """Values on the batch of terms that a function finds for a part; no gradients."""


class Method:
    """Chain-of-thought distillation on whole traces; methods override what they change.

    Args:
        settings: value of each key in `parameters`.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]
    pools: ClassVar[str] = "found"
    """Heads that its losses look at: "found" by their scores, or "random" ones, a control."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Artifacts beyond those of every student, each made by a rule once (`NEEDS` of the rules)."""
    settings_tried: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    """What tuning tries: parameters that differ from the study's, the study's own first."""
    divisible: ClassVar[bool] = True
    """Whether every term is a mean over tokens or sequences, so that parts of a batch do."""
    tuned_as: ClassVar[str] = ""
    """The method whose tuned weights this one takes over; "" is tuned itself."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.lambda_kl = float(settings["distil.lambda_kl"])

    def read(self, material: Material) -> None:
        """See the tokenizer, the student at step 0 and the needed artifacts, before `prepare`."""

    def prepare(self, traces: Sequence[Trace]) -> list[TrainingSequence]:
        """The sequences to train on."""
        return [whole_trace(trace) for trace in traces if usable(trace)]

    def targets(self, targets: Targets) -> Targets:
        """The cached teacher on all examples of the sequences."""
        return targets

    def further_generations(self) -> int:
        """Texts that the teacher wrote for this method beyond one trace an example."""
        return 0

    def start(self, student: Student, sequences: Sequence[TrainingSequence]) -> None:
        """See the student before its first step, also when a training resumes."""

    def sizes(self, batch: TrainingBatch, tokens: TeacherTokens) -> dict[str, float]:
        """What each term is a mean over: its value on a batch is the mean of its values on parts of
        the batch, weighed by these. 0: the term has nothing to look at.
        """
        return {
            "cot_nll": float(batch.weights.sum()),
            "cot_kl": float((batch.weights * tokens.given).sum()),
        }

    def knows(self, terms: Iterable[str]) -> bool:
        """Whether all that `measure` finds about these terms is known."""
        return True

    def measure(self, batches: Iterable[WholeBatch]) -> None:
        """See the first batches before training starts, and later one that has a new term."""

    def tap(self, batch: TrainingBatch) -> Tap | None:
        """What to read in the student's forward pass; None reads nothing."""
        return None

    def loss(self, step: StepInputs) -> dict[str, Term]:
        """The named terms of the loss of one batch."""
        return cot_terms(step, self.lambda_kl)

    def finish(self, model: Any) -> None:
        """Take from the trained student what only the training needed."""

    def left_out(self) -> tuple[str, ...]:
        """Parts of the method that could not be trained, for the record."""
        return ()

    def state(self) -> dict[str, Any]:
        """What `measure` found, as JSON holds it."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `state` gave."""


COT_TERMS = ("cot_nll", "cot_kl")


def cot_terms(step: StepInputs, lambda_kl: float) -> dict[str, Term]:
    """L_CoT (App. B) as two terms, both means over the batch's tokens."""
    student = token_log_probabilities(step.passed.logits)
    nll = negative_log_likelihood(student, step.batch.labels)
    kl = forward_kl(student, step.tokens.kept, step.tokens.log_probabilities)
    return {
        "cot_nll": Term(weighted_mean(nll, step.batch.weights), 1.0),
        "cot_kl": Term(weighted_mean(kl, step.batch.weights * step.tokens.given), lambda_kl),
    }
