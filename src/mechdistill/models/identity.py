"""Which run a checkpoint belongs to: its parameters and its inputs' bytes.

The workflow keeps checkpoints of different code in different folders.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def run_identity(parameters: str, inputs: Iterable[str | Path]) -> str:
    """SHA-256 of what the result of a run depends on, besides the code.

    Args:
        parameters: canonical text of the job's parameters and wildcards.
        inputs: files that the job reads, in a fixed order.
    """
    digest = hashlib.sha256(parameters.encode())
    for path in inputs:
        with Path(path).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
