"""Have freed memory kept by the process.

glibc gives a large freed block back to the kernel at once, which clears every page anew when the
next tensor asks for it. Where tensors are large, over a vocabulary above all, that costs more than
the arithmetic. The most memory that a job takes stays as it is.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>
_MOST = 2**31 - 1
_MOST_BEFORE_2_35 = 32 * 2**20
"""Older versions of glibc refuse a larger M_MMAP_THRESHOLD."""


def keep_freed_memory() -> bool:
    """Never give freed memory back before the process ends; says whether that could be set.

    Where the C library has no such setting (macOS, musl) nothing changes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    kept: bool = mallopt(_TRIM_THRESHOLD, _MOST) == 1
    whole: bool = mallopt(_MMAP_THRESHOLD, _MOST) == 1
    return kept and (whole or mallopt(_MMAP_THRESHOLD, _MOST_BEFORE_2_35) == 1)
