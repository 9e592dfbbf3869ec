"""The plan of a study: its jobs from Snakemake's graph, what each costs, and the total."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from mechdistill.errors import InputError
from mechdistill.planning.device import Device
from mechdistill.planning.work import Work, planner_of
from mechdistill.study import Study

NO_JOBS = ("all", "report")
"""Rules that only name files."""
ON_THE_HOST = ("convert_teacher",)
"""Rules whose memory is the machine's, whatever the device."""


@dataclass(frozen=True)
class Row:
    """One rule: how many jobs, and what one of them costs."""

    rule: str
    jobs: int
    work: Work
    processes: int | None = None
    """Of a partitioned training, one a device; None: as many devices as hold the memory."""


@dataclass(frozen=True)
class Plan:
    """Of one study. `teacher` says where the teacher's widths come from."""

    study: str
    device: Device
    teacher: str
    rows: tuple[Row, ...]

    @property
    def total(self) -> Work:
        """Of all jobs; memory is the largest of one job."""
        total = Work()
        for row in self.rows:
            total = total + row.work.times(row.jobs)
        return total

    def devices_of(self, row: Row) -> int:
        """As many as hold a job of the rule."""
        if row.rule in ON_THE_HOST:
            return 1
        if row.processes is not None:
            return row.processes
        return max(1, math.ceil(row.work.memory / self.device.memory))

    @property
    def hours(self) -> float:
        """Of all jobs, counted for each device that they hold."""
        return sum(_hours(row, self.devices_of(row)) for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Plain values: seconds, bytes, FLOPs of one job, and in total."""
        return {
            "study": self.study,
            "device": self.device.name,
            "teacher": self.teacher,
            "rules": [{"rule": row.rule, "jobs": row.jobs} | asdict(row.work) for row in self.rows],
            "total": asdict(self.total),
        }


def plan_study(study: Study, jobs: Mapping[str, int], root: Path, device: str | None) -> Plan:
    """What the jobs of a study cost.

    Args:
        jobs: rule -> number of jobs.
        root: folder that paths of the study start from.
        device: "cpu", "gpu", or None: by the size of the teacher.
    """
    planner = planner_of(study, root, device)
    rows = []
    for rule, number in jobs.items():
        shared = planner.shared(rule)
        processes = None if shared is None else shared.processes
        rows.append(Row(rule, number, planner.of(rule, number), processes))
    ordered = sorted(rows, key=lambda row: -row.jobs * row.work.seconds)
    return Plan(study.study, planner.device, planner.teacher.source, tuple(ordered))


def jobs_of(study: str, root: Path) -> dict[str, int]:
    """Numbers of jobs of each rule when nothing is there yet, from Snakemake's graph.

    Raises:
        InputError: Snakemake refuses the study; its words are passed on.
    """
    command = [sys.executable, "-m", "snakemake", "--d3dag", "--forceall"]
    run = subprocess.run(
        [*command, "--config", f"study={study}"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        said = run.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise InputError(
            f"Snakemake finds no jobs of {study}: {said[0]}",
            f"see snakemake -n --config study={study}",
        )
    nodes = json.loads(run.stdout)["nodes"]
    counted = Counter(node["value"]["rule"] for node in nodes)
    return {rule: number for rule, number in counted.items() if rule not in NO_JOBS}


def as_table(plan: Plan) -> Table:
    """For a terminal: a line a rule, the longest first, and the total."""
    table = Table(title=f"{plan.study} on {plan.device.name}; teacher: {plan.teacher}")
    table.add_column("rule", no_wrap=True)
    for name in ("jobs", "devices", "tokens", "FLOPs", "hours", "GiB memory", "GiB disk"):
        table.add_column(name, justify="right")
    for row in plan.rows:
        devices = plan.devices_of(row)
        numbers = (str(row.jobs), str(devices))
        table.add_row(row.rule, *numbers, *_cells(row.work.times(row.jobs), _hours(row, devices)))
    table.add_section()
    total = str(sum(row.jobs for row in plan.rows))
    table.add_row("all", total, "", *_cells(plan.total, plan.hours))
    return table


def _hours(row: Row, devices: int) -> float:
    return row.jobs * row.work.seconds * devices / 3600


def _cells(work: Work, hours: float) -> Sequence[str]:
    return (
        f"{work.tokens:.2g}",
        f"{work.flops:.2g}",
        f"{hours:,.3f}" if hours < 10 else f"{hours:,.0f}",
        f"{work.memory / 2**30:,.1f}",
        f"{work.disk / 2**30:,.3f}",
    )
