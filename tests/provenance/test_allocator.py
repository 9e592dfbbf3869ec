"""Freed memory stays with the process."""

import subprocess
import sys

import pytest

from mechdistill.provenance.allocator import keep_freed_memory

FAULTS = """
import resource, sys
import torch
from mechdistill.provenance.allocator import keep_freed_memory
if sys.argv[1] == "kept" and not keep_freed_memory():
    sys.exit(3)
def work():
    return sum(torch.ones(10_000_000).sum() for _ in range(10))
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    run = subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True)
    if run.returncode == 3:
        pytest.skip("this C library has no such setting")
    return int(run.stdout)


def test_a_tensor_freed_and_made_again_costs_no_page_faults():
    assert faults("kept") < 1_000 < 10_000 < faults("as it comes")


def test_setting_it_twice_does_no_harm():
    assert keep_freed_memory() == keep_freed_memory()
