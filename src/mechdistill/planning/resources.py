"""What a job asks of a cluster: memory, time, graphics cards, from the plan of its study.

The plan (`planning/work.py`) is made of the widths of the models, the lengths of the notes and the
numbers of the study; a cluster stops what goes beyond its request, so more is asked than planned:

- **memory**: 3.5 times the planned, beyond 3.6 GiB a quarter and 8 GiB more than planned, and
  what Snakemake and the run wrapper hold beside the script; at least 4 GB;
- **time**: four times the planned and ten minutes, in steps of ten minutes; at least 30;
- **graphics cards**: only jobs that compute on them: one for a `t5` simulator, and for a student of
  `distil.deepspeed` one a process, as many as hold it, where the plan is for cards. All other jobs
  compute on a core, and are planned on one.

A further attempt of a job that failed gets twice the memory and the time of the one before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mechdistill.planning.device import CPU
from mechdistill.planning.work import Planner

MEMORY_FACTOR = 3.5
"""Peaks of jobs that patch heads were up to 3.1 times the planned (docs/planning.md)."""
LARGE_MEMORY_FACTOR = 1.25
"""Of large jobs, whose weights are known and most of it."""
LARGE_MEMORY_MORE = 8 * 2**30
"""Bytes beside, for what is not known so well."""
BESIDE = 600 * 2**20
"""Bytes of Snakemake (two processes in a Slurm job) and of the run wrapper."""
LEAST_MEMORY = 4000
"""MB."""
TIME_FACTOR = 4.0
"""Jobs took up to 1.7 times the planned, and other machines are slower."""
START_MINUTES = 10
"""For Snakemake's start on a slow file system."""
LEAST_MINUTES = 30
STEP_MINUTES = 10
READERS = ("check_source", "read_source", "choose_labels", "ask_documents")
"""Rules over a user's documents, whose number is not known before they are read."""
READERS_MEMORY = 10_000
"""MB: the readers stay within 8 GB."""
READERS_MINUTES = 240
SIMULATORS = ("train_simulator", "simulate_answers")
"""Rules that run the model which predicts answers; a `t5` takes a graphics card where it is."""


@dataclass(frozen=True)
class Needs:
    """What a job asks for at its first attempt: MB, minutes, graphics cards."""

    memory: int = LEAST_MEMORY
    minutes: int = LEAST_MINUTES
    gpus: int = 0

    def at(self, attempt: int) -> Needs:
        """What the `attempt`-th attempt asks for (1 is the first).

        >>> Needs(4000, 30).at(3)
        Needs(memory=16000, minutes=120, gpus=0)
        """
        grown = 2 ** (attempt - 1)
        return Needs(self.memory * grown, self.minutes * grown, self.gpus)


def needs_of(rule: str, planner: Planner | None) -> Needs:
    """What a job of `rule` asks for; where a rule's jobs differ, what the largest one does.

    Args:
        planner: of the study; None for a joined one, whose jobs read tables.
    """
    if planner is None:
        return Needs()
    if rule in READERS:
        return Needs(READERS_MEMORY, READERS_MINUTES)
    shared = planner.shared(rule)
    on_core = replace(planner, device=CPU)
    work = on_core.of(rule, 1)  # of one job of several models: the teacher's
    memory, seconds = work.memory, work.seconds
    if shared is not None and not math.isinf(planner.device.memory):
        memory, seconds = shared.host, planner.of(rule, 1).seconds
    held = min(MEMORY_FACTOR * memory, LARGE_MEMORY_FACTOR * memory + LARGE_MEMORY_MORE)
    minutes = START_MINUTES + TIME_FACTOR * seconds / 60
    return Needs(
        max(LEAST_MEMORY, math.ceil((held + BESIDE) / 1e8) * 100),
        max(LEAST_MINUTES, math.ceil(minutes / STEP_MINUTES) * STEP_MINUTES),
        _gpus(rule, planner),
    )


def _gpus(rule: str, planner: Planner) -> int:
    """Of rules that compute on cards alone."""
    simulator = planner.study.evaluate.simulator
    if rule in SIMULATORS and simulator is not None:
        return int(simulator.kind == "t5")
    shared = planner.shared(rule)
    if shared is None or math.isinf(planner.device.memory):
        return 0
    return shared.processes
