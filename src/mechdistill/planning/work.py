"""What one job of each rule computes, in tokens, FLOPs, seconds, memory and disk."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from mechdistill.planning.device import CPU, GPU, LARGE, Device
from mechdistill.planning.partitioned import Partition, partition
from mechdistill.planning.sizes import Model, Sizes, sizes_of, student_of, teacher_of
from mechdistill.study import Study

START = 1.0
"""Seconds of every job: reading and writing files."""
BARE = 450 * 2**20
"""Bytes of memory of a job that has torch loaded."""
OF_THE_ENCODER = 0.13
"""Seconds to embed the windows of 48 tokens of reasoning, on one core; 8 times that for a curve."""
LOGIT_BYTES = 16
"""Of memory for a logit of a training: itself, its logarithm, gradients."""
DISTILLED_LOGIT_BYTES = 50
"""The same where the teacher's distribution is matched too."""
CORRUPTIONS = 4
"""Twin and phase of each pair of runs (K1, K2, and the sham in both phases)."""
FAMILIES = 6
"""Kinds of decisions in the reasoning and in the answer."""
PARTITIONED = "train_student"
"""The rule that computes in several processes under distil.deepspeed."""
RANKINGS = 9
"""Orders of heads of a phase that are patched in bins, beside random draws."""


@dataclass(frozen=True)
class Work:
    """Of one job. FLOPs are floating-point operations, `memory` and `disk` bytes."""

    tokens: float = 0.0
    flops: float = 0.0
    seconds: float = 0.0
    memory: float = 0.0
    disk: float = 0.0

    def __add__(self, other: Work) -> Work:
        """Both one after the other in one job: memory is the larger."""
        return Work(
            self.tokens + other.tokens,
            self.flops + other.flops,
            self.seconds + other.seconds,
            max(self.memory, other.memory),
            self.disk + other.disk,
        )

    def times(self, factor: float) -> Work:
        """So often in one job."""
        return Work(
            factor * self.tokens,
            factor * self.flops,
            factor * self.seconds,
            self.memory,
            factor * self.disk,
        )


@dataclass(frozen=True)
class Planner:
    """Formulas of the rules of one study on one device."""

    study: Study
    sizes: Sizes
    teacher: Model
    student: Model
    device: Device

    def of(self, rule: str, jobs: int) -> Work:
        """A job of the rule, the mean one where `jobs` of them differ (teacher and students)."""
        planned = self._models(rule, jobs)
        base = Work(seconds=START, memory=BARE)
        return base if planned is None else base + planned

    def shared(self, rule: str) -> Partition | None:
        """How a job of the rule is partitioned over processes (distil.deepspeed), if it is."""
        distil = self.study.distil
        if rule != PARTITIONED or distil.deepspeed is None:
            return None
        return partition(
            self.student,
            distil.deepspeed,
            batch_size=distil.training.batch_size,
            text=self.sizes.text,
            learnt=self.sizes.reasoning,
            room=self.device.memory,
            logit_bytes=DISTILLED_LOGIT_BYTES,
        )

    def _models(self, rule: str, jobs: int) -> Work | None:
        study, teacher, student = self.study, self.teacher, self.student
        notes, text, reasoning = study.data.splits, self.sizes.text, self.sizes.reasoning
        evaluated = notes.validation + notes.test
        every = notes.training + evaluated + notes.ranking + notes.patching
        samples = study.distil.morsd.samples * notes.training
        distil = study.distil
        match rule:
            case "train_teacher":
                made = study.teacher.training
                assert made is not None
                return self._train(teacher, made.steps, made.batch_size, text, reasoning)
            case "convert_teacher":
                stored = teacher.parameters * self.device.width
                return Work(seconds=2.3e-7 * teacher.parameters, memory=3 * stored, disk=stored)
            case "fine_tune_teacher":
                tuned = study.teacher.fine_tuning
                assert tuned is not None
                if not tuned.steps:
                    return Work(disk=teacher.parameters * self.device.width)
                return self._train(
                    teacher,
                    tuned.steps,
                    tuned.batch_size,
                    text,
                    reasoning,
                    at_once=tuned.texts_a_pass,
                    states=1 if tuned.lora else 4,
                )
            case "compare_with_zero_shot":
                shown = notes.ranking + notes.patching
                return self._generate(teacher, shown) + self._read(teacher, 4 * notes.ranking)
            case "generate_teacher_traces" | "ask_teacher_server":
                return self._generate(teacher, every)
            case "sample_traces":
                return self._generate(teacher, samples)
            case "score_heads" | "watch_heads":
                return self._read(teacher, 2 * notes.ranking)
            case "find_events":
                return self._read(teacher, every)
            case "cache_event_targets":
                return self._read(teacher, notes.training)
            case "cache_targets" | "cache_random_targets":
                return self._read(teacher, notes.training) + self._targets(notes.training)
            case "cache_sample_targets":
                return self._read(teacher, samples) + self._targets(samples)
            case "measure_difficulty":
                return self._read(student, samples)
            case "train_reasoning_encoder":
                encoder = distil.semcot.encoder
                epochs = encoder.projection_epochs + encoder.epochs
                steps = epochs * notes.training // encoder.batch_size
                return self._train(teacher, steps, encoder.batch_size, reasoning, learnt=0)
            case "train_base_student":
                base = distil.base
                note = self.sizes.note
                return self._train(student, base.steps, base.batch_size, note, note)
            case "pool_student_heads":
                return self._read(student, 2 * notes.ranking)
            case "train_student":
                whole = self._distil(distil.training.steps)
                shared = self.shared(rule)
                if shared is None:
                    return whole
                return replace(
                    whole,
                    seconds=whole.seconds / shared.processes,
                    memory=shared.host
                    if math.isinf(self.device.memory)
                    else shared.processes * shared.device,
                )
            case "try_setting":
                return self._distil(distil.tuning.steps) + self._generate(student, notes.validation)
            case "decode_model":
                return self._mean_model(
                    self._generate(teacher, evaluated), self._generate(student, evaluated), jobs
                )
            case "score_model":
                mean = self._mean_model(
                    self._read(teacher, 2 * notes.test), self._read(student, 2 * notes.test), jobs
                )
                return mean + self._embed(notes.test + 8 * study.evaluate.curve_examples)
            case "decode_patching_notes":
                return self._generate(student, notes.ranking + notes.patching)
            case "find_student_events":
                return self._read(student, notes.ranking + notes.patching)
            case "ablate_student_heads" | "ablate_student_sets":
                same = rule.replace("student_sets", "head_sets").replace("student_heads", "heads")
                return replace(self, teacher=student)._models(same, jobs)
            case "train_simulator":
                simulator = study.evaluate.simulator
                assert simulator is not None
                return Work(seconds=0.01 * simulator.steps * simulator.batch_size)
            case "simulate_answers":
                models = 1 + len(distil.methods) * len(distil.seeds)
                return self._embed(models * notes.test // 3)
            case "check_corruptions":
                return self._generate(teacher, 3 * notes.patching) + self._embed(3 * notes.patching)
            case "patch_single_heads":
                branches = teacher.layers * teacher.heads * 2 * 2 * 2 * notes.patching
                return self._patch(branches, 0.6) + self._read(teacher, 2 * 2 * notes.patching)
            case "ablate_heads":
                branches = teacher.layers * teacher.heads * 2 * FAMILIES * notes.patching
                return self._patch(branches, 1.0) + self._read(
                    teacher, FAMILIES * (2 * notes.ranking + 3 * notes.patching)
                )
            case "ablate_before_events":
                tokens = sum(1 + offset for offset in study.patching.elicit_offsets)
                branches = teacher.layers * teacher.heads * 2 * tokens * notes.patching
                times = len(study.patching.elicit_offsets)
                return self._patch(branches, 1.0) + self._read(
                    teacher, times * (2 * notes.ranking + 4 * notes.patching)
                )
            case "probe_regions":
                times = 1 + study.patching.probe_depth
                return self._read(teacher, times * (notes.ranking + notes.patching)) + Work(
                    seconds=0.05 * times * (1 + teacher.layers)
                )
            case "ablate_head_sets":
                drawn = 2 + 2 * study.patching.random_draws
                branches = 2 * len(study.patching.bins) * drawn * FAMILIES * notes.patching
                return self._patch(branches / 2, 1.0) + self._read(
                    teacher, FAMILIES * (notes.ranking + notes.patching / 2)
                )
            case "knock_in_heads":
                patching = study.patching
                drawn = 2 + 2 * patching.random_draws
                pairs = 2 * patching.null_draws * FAMILIES * notes.patching / 2
                return self._patch(len(patching.bins) * drawn * pairs, 1.0) + self._read(
                    teacher, FAMILIES * (1 + patching.null_draws) * notes.patching / 2
                )
            case "attend_at_events":
                return self._read(teacher, notes.patching)
            case "patch_margin":
                branches = self._conditions(study.patching.bins) * 3 * 2 * CORRUPTIONS
                return self._patch(branches * notes.patching, 1.0) + self._read(
                    teacher, 2 * CORRUPTIONS * notes.patching
                )
            case "patch_listed":
                lists = study.data.candidates
                assert lists is not None
                longest = replace(self, sizes=sizes_of(study, lists.sweep[-1]))
                branches = self._conditions(study.patching.bins) * 2 * 2
                return (
                    longest._generate(teacher, notes.patching)
                    + longest._patch(branches * notes.patching, 1.0)
                    + longest._read(teacher, 2 * 2 * notes.patching)
                )
            case "patch_generated":
                patching = study.patching
                runs = self._conditions(patching.generated_bins) * 2 * 2 * CORRUPTIONS
                return self._generate(
                    teacher,
                    runs * patching.generated_examples,
                    batch=patching.batch_size,
                    prompts=CORRUPTIONS * patching.generated_examples,
                )
        return None

    def _conditions(self, bins: tuple[int, ...]) -> int:
        return len(bins) * (RANKINGS + self.study.patching.random_draws)

    def _mean_model(self, teacher: Work, student: Work, jobs: int) -> Work:
        mean = teacher.times(1 / jobs) + student.times((jobs - 1) / jobs)
        return Work(mean.tokens, mean.flops, mean.seconds, mean.memory, mean.disk)

    def _distil(self, steps: int) -> Work:
        """Training of a student."""
        return self._train(
            self.student,
            steps,
            self.study.distil.training.batch_size,
            self.sizes.text,
            self.sizes.reasoning,
            logit_bytes=DISTILLED_LOGIT_BYTES,
        )

    def _train(
        self,
        model: Model,
        steps: int,
        batch: int,
        length: float,
        learnt: float,
        *,
        at_once: int | None = None,
        states: int = 4,
        logit_bytes: int = LOGIT_BYTES,
    ) -> Work:
        """Three times a forward pass, whose logits are computed only where a token is learnt.

        Args:
            batch: texts a step.
            length, learnt: tokens of a text, and those of them that are learnt.
            at_once: texts in memory together; None for the batch.
            states: numbers of 4 bytes a parameter: weight, gradient and two moments, or the weight
                alone where few others are trained.
        """
        tokens, logits = steps * batch * length, steps * batch * learnt * model.vocabulary
        flops = 3 * (model.flops(tokens, length) - 2 * model.hidden * model.vocabulary * tokens)
        flops += 6 * model.hidden * logits
        texts = at_once or batch
        activations = texts * length * model.layers * 34 * model.hidden * 4
        stored = 4 * model.parameters
        return Work(
            tokens,
            flops,
            flops / self.device.training_rate(model) + logits * self.device.logit_seconds,
            BARE + states * stored + activations + texts * learnt * model.vocabulary * logit_bytes,
            2 * stored,  # the model and its last checkpoint
        )

    def _read(self, model: Model, notes: float) -> Work:
        """Forward passes over prompts with their reasoning."""
        tokens = notes * self.sizes.text
        flops = model.flops(tokens, self.sizes.text)
        logits = self.study.heads.batch_size * self.sizes.text * model.vocabulary * 4
        return Work(
            tokens,
            flops,
            flops / (self.device.forward * self.device.training_rate(model)),
            BARE + self.device.width * model.parameters + logits,
            tokens * 8,
        )

    def _generate(
        self, model: Model, notes: float, batch: int | None = None, prompts: float | None = None
    ) -> Work:
        """Prompts read once, then a token at a time with a cache of keys and values."""
        text = self.sizes.text
        read = self.sizes.prompt * (notes if prompts is None else prompts)
        tokens = read + notes * self.sizes.reasoning
        flops = model.flops(tokens, text)
        cache = model.cache_bytes((batch or self.study.traces.batch_size) * text, self.device.width)
        return Work(
            tokens,
            flops,
            flops / (self.device.generation * self.device.training_rate(model)),
            BARE + self.device.width * model.parameters + cache,
            tokens * 8,
        )

    def _patch(self, branches: float, share: float) -> Work:
        """Branches of one position each, through that share of the layers."""
        tokens = branches * self.sizes.decisions / 2
        flops = share * self.teacher.flops(tokens, self.sizes.text)
        wide = self.study.patching.branches_per_pass * self.teacher.vocabulary * 4
        return Work(
            tokens,
            flops,
            flops / (self.device.forward * self.device.training_rate(self.teacher)),
            BARE + self.device.width * self.teacher.parameters + wide,
            tokens * 4,
        )

    def _embed(self, traces: float) -> Work:
        """The text encoder over windows of reasoning; it runs on the processor."""
        seconds = OF_THE_ENCODER * traces * self.sizes.reasoning / 48
        return Work(seconds=seconds, memory=BARE + 600 * 2**20)

    def _targets(self, notes: float) -> Work:
        """Log-probabilities and their tokens, and what the heads did, in float32."""
        kept = notes * self.sizes.reasoning
        return Work(disk=kept * (12 * self.study.distil.teacher_top_k + 20))


def planner_of(study: Study, root: Path, device: str | None = None) -> Planner:
    """The formulas of a study.

    Args:
        root: folder that paths of the study start from.
        device: "cpu", "gpu", or None: by the size of the teacher.
    """
    teacher = teacher_of(study, root)
    if device is None:
        chosen = GPU if teacher.parameters >= LARGE else CPU
    else:
        chosen = GPU if device == "gpu" else CPU
    return Planner(study, sizes_of(study), teacher, student_of(study, teacher), chosen)
