"""Which split a combination of gold codes, or a document, belongs to: each is in one split."""

import hashlib
from collections.abc import Iterable

TRAINING = "training"
SPLITS = (TRAINING, "validation", "ranking", "patching", "test")
_SHARES = {"training": 0.6, "validation": 0.1, "ranking": 0.1, "patching": 0.08, "test": 0.12}


def split_of(codes: Iterable[str], seed: int) -> str:
    """Split of a set of gold codes, in whatever order: a hash, so that no list must be kept.

    >>> split_of(["J45.21", "I50.21"], 7) == split_of(["I50.21", "J45.21"], 7)
    True
    """
    key = f"{seed}:{'+'.join(sorted(codes))}".encode()
    point = int.from_bytes(hashlib.sha256(key).digest()[:8], "big") / 2**64
    for split, share in _SHARES.items():
        if point < share:
            return split
        point -= share
    return SPLITS[-1]
