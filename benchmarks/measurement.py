"""Ways of doing the same work, timed turn by turn and checked to agree; results in one file a case.

Each way runs in a process of its own (see `worker`), all of a case side by side, idle but for the
one whose turn it is. The first turn of a fresh process gives its peak of memory and its values; the
later ones, in alternating order, give CPU seconds. A ratio is taken turn by turn and told by its
median and quartiles: other load on the machine then hits both ways alike. A way too slow for a
second turn is compared by the first turns of both.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results"
RIVALS = ROOT / ".venv-bench" / "bin" / "python"
"""Python of the rivals; MECHDISTILL_RIVALS names another one."""
MEASURING = ("worker", "preloaded", "measurement", "made_up", "factors")
"""Modules that decide what is measured, beside the ways."""
MEMORY_SHARE = 0.8
"""Of the free memory that a way may need."""


@dataclass(frozen=True)
class Way:
    """A way of doing the work.

    Args:
        name: as the table shows it.
        module: serves it when it is run.
        rival: runs in the rivals' environment.
        needs_mib: memory that it needs by arithmetic; it is left out where that is not free.
        left_out: why it is not run at all; "" runs it.
        turns: timed turns after the first; None takes all of the case's.
    """

    name: str
    module: str
    rival: bool = False
    needs_mib: float = 0.0
    left_out: str = ""
    turns: int | None = None


@dataclass(frozen=True)
class Comparison:
    """One ratio of the table.

    Args:
        faster: tell how many times faster `way` is than `against` (targets are least values);
            otherwise what share of the other's cost it has (targets are greatest values).
        time_target, memory_target: None where nothing is promised.
    """

    way: str
    against: str
    faster: bool
    time_target: float | None = None
    memory_target: float | None = None


@dataclass(frozen=True)
class Case:
    """One piece of work at one size.

    Args:
        benchmark: what is measured.
        axis, value: what is varied ("tokens") and its value here.
        setting: all that a way needs to know; goes to it as JSON.
        repeats: timed turns.
    """

    benchmark: str
    axis: str
    value: int
    setting: Mapping[str, Any]
    ways: Sequence[Way]
    comparisons: Sequence[Comparison]
    repeats: int

    def turns(self) -> dict[str, int]:
        """Timed turns by way."""
        return {w.name: self.repeats if w.turns is None else w.turns for w in self.ways}

    @property
    def path(self) -> Path:
        """Where its results are kept."""
        model = self.setting["model"]
        name = f"{self.benchmark}-{model}-{self.axis}-{self.value}".replace(" ", "_")
        return results() / f"{name}.json"


@dataclass
class Turns:
    """What one way cost."""

    first: float = float("nan")
    """Seconds of the first turn."""
    seconds: list[float] = field(default_factory=list)
    peak_mib: float = float("nan")
    absent: str = ""
    values: dict[str, np.ndarray] = field(default_factory=dict)


def results() -> Path:
    """Folder of the results; MECHDISTILL_BENCH_RESULTS names another one."""
    return Path(os.environ.get("MECHDISTILL_BENCH_RESULTS", RESULTS))


def measure(case: Case) -> dict[str, Any]:
    """Run a case, unless its results are there and of the same code; returns what is kept."""
    if case.path.exists():
        kept: dict[str, Any] = json.loads(case.path.read_text(encoding="utf-8"))
        same = kept["code"] == code_digest() and kept["setting"] == dict(case.setting)
        if same and kept["turns"] == case.turns():
            return kept
    turns = _take_turns(case)
    record = {
        "benchmark": case.benchmark,
        "axis": case.axis,
        "value": case.value,
        "setting": dict(case.setting),
        "turns": case.turns(),
        "code": code_digest(),
        "commit": commit(),
        "machine": machine(),
        "versions": versions(),
        "ways": {
            name: {
                "first": of.first,
                "seconds": of.seconds,
                "peak_mib": of.peak_mib,
                "absent": of.absent,
            }
            for name, of in turns.items()
        },
        "comparisons": [
            asdict(c) | {"difference": difference(turns[c.way].values, turns[c.against].values)}
            for c in case.comparisons
        ],
    }
    case.path.parent.mkdir(parents=True, exist_ok=True)
    partial = case.path.with_suffix(".tmp")
    partial.write_text(json.dumps(record, indent=1), encoding="utf-8")
    partial.replace(case.path)
    return record


def difference(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> float:
    """Greatest difference of two ways' values, as a share of the greatest value of its name.

    NaN where a way has no values.

    Raises:
        ValueError: the ways name different values, or one is not a number where the other is.
    """
    if not one or not other:
        return float("nan")
    if set(one) != set(other):
        raise ValueError(f"values {sorted(one)} cannot be compared with {sorted(other)}")
    found = 0.0
    for name, values in one.items():
        expected = other[name].astype(float)
        if (np.isnan(values) != np.isnan(expected)).any():
            raise ValueError(f"{name}: one way has numbers where the other has none")
        scale = max(float(np.nanmax(np.abs(expected), initial=0.0)), 1e-12)
        gap = np.nanmax(np.abs(values.astype(float) - expected), initial=0.0)
        found = max(found, float(gap) / scale)
    return found


def ratios(record: Mapping[str, Any], comparison: Mapping[str, Any]) -> np.ndarray:
    """The comparison's ratio in each turn that both took; empty where a way is absent.

    The first turns count only where one of the two took no other.
    """
    of = [record["ways"][comparison[key]] for key in ("way", "against")]
    if any(one["absent"] for one in of):
        return np.empty(0)
    shared = min(len(one["seconds"]) for one in of)
    way, against = (np.asarray(one["seconds"][:shared] if shared else [one["first"]]) for one in of)
    return against / way if comparison["faster"] else way / against


def memory_ratio(record: Mapping[str, Any], comparison: Mapping[str, Any]) -> float:
    """The same of peak memory; NaN where a way is absent."""
    way, against = (record["ways"][comparison[key]]["peak_mib"] for key in ("way", "against"))
    return against / way if comparison["faster"] else way / against


def median_and_quartiles(values: Sequence[float] | np.ndarray) -> tuple[float, float, float]:
    """Median, first and third quartile; NaN of nothing."""
    if not len(values):
        return (float("nan"),) * 3
    return tuple(float(np.quantile(values, q)) for q in (0.5, 0.25, 0.75))  # type: ignore[return-value]


def show(record: Mapping[str, Any]) -> None:
    """Print a case's ratios."""
    print(
        f"{record['benchmark']} ({record['setting']['model']}), {record['axis']} {record['value']}"
    )
    for name, of in record["ways"].items():
        if of["absent"]:
            print(f"  {name}: {of['absent']}")
            continue
        seconds, low, high = median_and_quartiles(of["seconds"] or [of["first"]])
        spread = f"{seconds:.4g} s ({low:.4g} to {high:.4g})"
        print(f"  {name}: {spread}, peak {of['peak_mib']:.0f} MiB")
    for comparison in record["comparisons"]:
        ratio, low, high = median_and_quartiles(ratios(record, comparison))
        word = "times faster than" if comparison["faster"] else "times the cost of"
        print(
            f"  {comparison['way']} {ratio:.3f} ({low:.3f} to {high:.3f}) {word} "
            f"{comparison['against']}; memory {memory_ratio(record, comparison):.2f}; "
            f"values differ by {comparison['difference']:.1e}"
        )


@functools.cache
def code_digest() -> str:
    """Of what is measured and how: results of other code are measured again."""
    own = [HERE / f"{name}.py" for name in MEASURING]
    files = sorted([*(ROOT / "src").rglob("*.py"), *own, *(HERE / "ways").glob("*.py")])
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def commit() -> str:
    """The commit that is checked out, with a plus where code was changed since; "" without git."""
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run(
        [*git, "status", "--porcelain", "src", "benchmarks"], capture_output=True, text=True
    )
    return found.stdout.strip()[:12] + ("+" if changed.stdout.strip() else "")


def machine() -> str:
    """Processor, cores, memory, system."""
    text = Path("/proc/cpuinfo").read_text()
    names = [line.split(":")[1].strip() for line in text.splitlines() if "model name" in line]
    kib = int(Path("/proc/meminfo").read_text().split()[1])
    return (
        f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, "
        f"{kib / 2**20:.0f} GiB, {platform.system()} {platform.release()}"
    )


def versions() -> dict[str, str]:
    """Of what decides the figures."""
    found = {name: version(name) for name in ("torch", "transformers", "numpy")}
    return {"python": platform.python_version()} | found


def free_mib() -> float:
    """Memory that processes can still take."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) / 1024
    raise OSError("/proc/meminfo holds no MemAvailable")


class _Worker:
    """A way's process: forked with torch loaded, or started in the rivals' environment."""

    def __init__(self, way: Way, setting: Mapping[str, Any]) -> None:
        self._name = way.name
        self._folder = tempfile.TemporaryDirectory()
        self._errors = Path(self._folder.name) / "errors"
        self._errors.touch()
        arguments = ["--way", way.name, "--setting", json.dumps(dict(setting))]
        if way.rival:
            with self._errors.open("w") as errors:
                process = subprocess.Popen(
                    [rivals_python(), "-m", way.module, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    env=_environment(),
                )
            self._input, self._output, self._number = process.stdin, process.stdout, process.pid
            self._wait: Callable[[], object] = process.wait
        else:
            self._number, self._input, self._output = _forked(
                way.module, arguments, Path(self._folder.name)
            )
            self._wait = lambda: None  # the process that forked it does

    def ask(self, line: str) -> dict[str, Any]:
        """Its answer; raises RuntimeError if it ended instead."""
        if line:
            with contextlib.suppress(BrokenPipeError):  # it ended: no answer will come either
                print(line, file=self._input, flush=True)
        answer = self._output.readline()
        if not answer:
            lines = self._errors.read_text().strip().splitlines()
            last = lines[-1] if lines else "no message (out of memory?)"
            raise RuntimeError(f"{self._name} ended: {last}")
        found: dict[str, Any] = json.loads(answer)
        return found

    def end(self) -> None:
        """Let it go."""
        with contextlib.suppress(ProcessLookupError):  # it ended by itself
            os.kill(self._number, signal.SIGKILL)
        self._wait()
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        self._output.close()
        self._folder.cleanup()


def _environment() -> dict[str, str]:
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "HF_HUB_OFFLINE": "1",
        # big blocks go back to the system at once: otherwise a peak depends on the last one
        "MALLOC_MMAP_THRESHOLD_": str(2**20),
    }


@functools.cache
def _preloaded() -> subprocess.Popen[str]:
    """The process that has torch loaded; it ends with its standard input, when this one ends."""
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.preloaded"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(),
    )


def _forked(module: str, arguments: Sequence[str], folder: Path) -> tuple[int, IO[str], IO[str]]:
    """Number of a new process that runs a module, its standard input and output."""
    pipes = folder / "input", folder / "output"
    for pipe in pipes:
        os.mkfifo(pipe)
    request = {
        "module": module,
        "arguments": list(arguments),
        "input": str(pipes[0]),
        "output": str(pipes[1]),
        "errors": str(folder / "errors"),
        "path": [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path],
    }
    server = _preloaded()
    print(json.dumps(request), file=server.stdin, flush=True)
    number = int(server.stdout.readline())
    # in the order in which the other side opens them: each waits for the other's end
    return number, pipes[0].open("w"), pipes[1].open()


def rivals_python() -> Path:
    """Python of the rivals' environment."""
    return Path(os.environ.get("MECHDISTILL_RIVALS", RIVALS))


def _take_turns(case: Case) -> dict[str, Turns]:
    turns = {way.name: Turns(absent=_reason(way)) for way in case.ways}
    workers: dict[str, _Worker] = {}
    try:
        for way in case.ways:
            if not turns[way.name].absent:
                workers[way.name] = _Worker(way, case.setting)
        rivals = {way.name for way in case.ways if way.rival}
        for name in list(workers):
            try:
                workers[name].ask("")
                answer = workers[name].ask("run")
                turns[name].first, turns[name].peak_mib = answer["seconds"], answer["peak_mib"]
                turns[name].values = _values(workers[name])
            except RuntimeError as error:
                if name not in rivals:
                    raise
                turns[name].absent = str(error)
                workers.pop(name).end()
        for number in range(case.repeats):
            # alternating, so that no way always finds the caches warm
            for name in list(workers) if number % 2 else list(workers)[::-1]:
                if number < case.turns()[name]:
                    turns[name].seconds.append(workers[name].ask("run")["seconds"])
    finally:
        for worker in workers.values():
            worker.end()
    return turns


def _reason(way: Way) -> str:
    """Why a way cannot run here; "" if it can."""
    if way.left_out:
        return way.left_out
    if way.rival and not rivals_python().exists():
        return f"not run: {RIVALS.relative_to(ROOT)} is missing (make bench installs it)"
    if way.needs_mib > MEMORY_SHARE * free_mib():
        needed, free = way.needs_mib / 1024, free_mib() / 1024
        return f"not run: needs about {needed:.1f} GiB, {free:.1f} GiB were free"
    return ""


def _values(worker: _Worker) -> dict[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.npz"
        worker.ask(f"values {path}")
        with np.load(path) as kept:
            return dict(kept)
