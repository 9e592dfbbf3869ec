"""Make, write and read the simulator that a study names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mechdistill.artifacts import how_to_make, read_tensors, write_tensors
from mechdistill.errors import InputError
from mechdistill.evaluate.simulators import Lesson, Simulator, SimulatorSettings, encoder, t5
from mechdistill.evaluate.simulators.encoder import EncoderSimulator, Sentences
from mechdistill.evaluate.simulators.t5 import T5Simulator
from mechdistill.models.checkpoint_files import Checkpoint, checked_folder
from mechdistill.models.text_to_text import TextToText


def train_simulator(
    lessons: Sequence[Lesson],
    codes: Sequence[str],
    sentences: Sentences,
    settings: SimulatorSettings,
) -> Simulator:
    """A simulator trained on lessons.

    Args:
        codes: the label space.
        sentences: of the study; a T5 does without.

    Raises:
        InputError: the checkpoint is missing or not the one that the study names.
    """
    if settings.kind == encoder.KIND:
        small = EncoderSimulator.untrained(sentences, codes, settings.seed)
        small.fit(lessons, settings)
        return small
    checkpoint = Checkpoint.of(settings.checkpoint or {}, "evaluate.simulator.checkpoint")
    model = TextToText.from_folder(checked_folder(checkpoint), t5.LONGEST_INPUT)
    large = T5Simulator(model, codes, settings.batch_size)
    large.fit(lessons, settings)
    return large


def write_simulator(path: str | Path, simulator: Simulator) -> None:
    """One file: weights and all that is needed beside the sentence encoder."""
    write_tensors(path, *simulator.contents())


def read_simulator(path: str | Path, sentences: Sentences) -> Simulator:
    """What `write_simulator` wrote.

    Raises:
        InputError: the file is missing, damaged or no simulator.
    """
    tensors, about = read_tensors(path)
    try:
        if about["kind"] == encoder.KIND:
            return EncoderSimulator.of(tensors, about, sentences)
        return T5Simulator.of(tensors, about)
    except (KeyError, RuntimeError, ValueError) as error:
        raise InputError(f"{path} is no simulator ({error})", how_to_make(path)) from error
