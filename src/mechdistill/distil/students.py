"""Train one student with one method from files; no teacher is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mechdistill.artifacts import read_json
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.anchors import anchors_by_example
from mechdistill.distil.budget import Spent
from mechdistill.distil.engine import Engine, OneProcess
from mechdistill.distil.history import History
from mechdistill.distil.method import Material, Method, Student
from mechdistill.distil.objective import Distillation
from mechdistill.distil.order import DataOrder
from mechdistill.distil.targets import read_targets
from mechdistill.distil.trainer import TrainingSettings, optimiser_of, train
from mechdistill.distil.zero import Zero, ZeroSettings
from mechdistill.errors import InputError
from mechdistill.heads.pools import read_pools
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.identity import run_identity
from mechdistill.models.loading import load_model, with_weights
from mechdistill.models.precision import to_precision
from mechdistill.parameters import Parameters
from mechdistill.traces.store import read_traces

INPUTS = (
    *("base", "config", "pools", "targets"),
    *("traces", "examples", "label_space", "tokenizer"),
)


@dataclass(frozen=True)
class StudentFiles:
    """What every student is trained from, and what its method needs beside it."""

    base: Path
    config: Path
    pools: Path
    targets: Path
    traces: Path
    examples: Path
    label_space: Path
    tokenizer: Path
    needs: Mapping[str, Path]

    def paths(self) -> list[Path]:
        """All files, in a fixed order."""
        return [*(getattr(self, name) for name in INPUTS), *self.needs.values()]


@dataclass(frozen=True)
class Trained:
    """A student at the end of its training."""

    model: Any
    """None in the further processes of a training that has several."""
    history: History
    spent: Spent
    teacher_generations: int
    """Texts that the teacher wrote for it."""
    left_out: tuple[str, ...]
    """Parts of the method that could not be trained."""
    engine: dict[str, Any]
    """How it was run, see `mechdistill.distil.engine.Engine.about`."""


def train_student(
    method: Method,
    files: StudentFiles,
    settings: TrainingSettings,
    seed: int,
    checkpoint: Path,
    about: str,
    deepspeed: ZeroSettings | None,
) -> tuple[Trained, Engine]:
    """Train a student to the last step, or go on from a checkpoint of the same run.

    Args:
        method: with its settings.
        seed: of the data order.
        checkpoint: where the resumable state lies; it is there until it is discarded.
        about: canonical text of method, seed and parameters: what the run is, beside its files.
        deepspeed: how the student is partitioned over the processes of this run; None trains it in
            this process.

    Raises:
        InputError: the method needs whole batches, and they would be shared out.
    """
    if deepspeed is not None and not method.divisible:
        raise InputError(
            f"{method.name} needs whole batches, and distil.deepspeed shares them out",
            f"leave {method.name} out of distil.methods, or set distil.deepspeed to null",
        )
    traces = read_traces(files.traces, "training")
    tokenizer = load_tokenizer(files.tokenizer)
    model = to_precision(load_model(files.base, files.config).train(), settings.weights)
    method.read(Material(tokenizer, model, files.needs))
    targets = method.targets(read_targets(files.targets))
    sequences = targets.aligned(method.prepare(traces))
    anchors = anchors_by_example(
        model,
        read_examples(files.examples, "training"),
        read_label_space(files.label_space),
        tokenizer,
    )
    pools = read_pools(files.pools)
    method.start(
        Student(model, pools, anchors, targets.pool_sizes, targets.minimum_keys), sequences
    )
    order = DataOrder([len(s.tokens) for s in sequences], settings.batch_size, seed)
    identity = run_identity(about, files.paths())
    engine: OneProcess | Zero
    if deepspeed is None:
        saved = Checkpoint(checkpoint, identity)
        engine = OneProcess(model, optimiser_of(model, settings), saved, settings.clip)
    else:
        folder = checkpoint.with_name(f"{checkpoint.name}.zero")
        engine = Zero(model, deepspeed, settings, order.batch_size, folder, identity)
    objective = Distillation(
        model,
        method,
        sequences,
        targets,
        order,
        tokenizer.pad_token_id,
        tokenizer.all_special_ids,
        engine,
    )
    history, spent = train(engine, objective, settings, f"{method.name} step")
    if isinstance(engine, Zero):
        weights = engine.whole_weights()
        model = None if weights is None else with_weights(files.base, files.config, weights)
    else:
        method.finish(to_precision(model, "float32"))
    written = len(traces) + method.further_generations()
    left_out = (*method.left_out(), *targets.left_out())
    return Trained(model, history, spent, written, left_out, engine.about()), engine


def settings_of(
    parameters: Sequence[str], value: Parameters, tuned: str | Path | None
) -> tuple[dict[str, Any], int]:
    """A method's settings, and how many were tried to find them.

    Args:
        parameters: keys that the method declares.
        value: gives the study's value of a key.
        tuned: file of the tuning that the method takes its values from; None takes the study's.
    """
    found = {key: value[key] for key in parameters}
    if tuned is None:
        return found, 1
    choice = read_json(tuned)
    chosen = {key: new for key, new in choice["settings"].items() if key in found}
    return {**found, **chosen}, int(choice["tried"])
