"""A process that does a piece of work in one way, each time it is told to.

Needs numpy and the standard library alone, so that rivals run it in an environment of their own.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mechdistill.provenance.allocator import keep_freed_memory

SHORT = {"tokens": 64, "conditions": 2, "steps": 2}
"""Sizes of the warm-up."""
Work = Callable[[], Mapping[str, np.ndarray]]
"""Does the work once; gives what another way must agree with, by name."""


def main(ways: Mapping[str, Callable[[Mapping[str, Any]], Work]]) -> None:
    """Be the way that the command line names.

    Args:
        ways: by name, each prepares the work of a setting; preparing is neither timed nor counted.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", choices=ways, required=True)
    parser.add_argument("--setting", type=json.loads, required=True, help="JSON")
    args = parser.parse_args()
    prepare = ways[args.way]
    least = {name: min(value, SHORT[name]) for name, value in args.setting.items() if name in SHORT}
    prepare(args.setting | least)()  # code that loads at first use is no part of a peak
    serve(prepare(args.setting))


def serve(work: Work) -> None:
    """Work once for every line `run` on standard input; write the values at a line `values PATH`.

    Answers with one line of JSON each: CPU seconds, and the peak of resident memory over what was
    resident before, in MiB. The first time big blocks are given back at once, so that the peak is
    exact; afterwards freed memory is kept, as in the jobs of the workflow, and there is no peak.
    """
    # what libraries print must not be taken for an answer
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    values: Mapping[str, np.ndarray] = {}
    first = True
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        if command == "run":
            values = {}
            gc.collect()
            before = _reset_peak() if first else float("nan")
            start = time.process_time()
            values = work()
            seconds = time.process_time() - start
            print(json.dumps({"seconds": seconds, "peak_mib": _peak() - before}), file=answers)
            if first:
                keep_freed_memory()
                first = False
        else:
            np.savez(Path(argument), **values)
            print(json.dumps({"written": argument}), file=answers)


def _reset_peak() -> float:
    """Resident MiB now, from where the peak is counted (Linux, glibc)."""
    ctypes.CDLL(None).malloc_trim(0)  # freed memory that was kept would hide what is taken anew
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> float:
    return _status("VmHWM")


def _status(key: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    raise OSError(f"/proc/self/status holds no {key}")
