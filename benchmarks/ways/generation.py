"""Ways of writing on under patching: all conditions in one batch, or one after another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.made_up import corrupted, head_sets, made_up_model, made_up_trace
from benchmarks.worker import Work, main
from mechdistill.models.recorded import patched_greedy, record_greedy

NEVER = -1
"""A token that ends nothing: all runs are equally long."""


def patched(setting: Mapping[str, Any], *, together: bool) -> Work:
    """Greedy runs on the corrupted prompt with clean heads put in at every step."""
    torch.set_num_threads(1)
    model = made_up_model(setting["model"], "tapped")
    clean = made_up_trace(setting["tokens"]).ids
    steps = setting["steps"]
    donor, recipient = record_greedy(
        model, [clean, corrupted(clean)], max_new_tokens=steps, eos_id=NEVER, pad_id=0
    )
    heads = torch.from_numpy(head_sets(setting["model"], setting["conditions"]))
    parts = [heads] if together else heads.split(1)

    def work() -> dict[str, np.ndarray]:
        written: list[list[int]] = []
        for part in parts:
            written += patched_greedy(
                model,
                recipient,
                donor,
                "output",
                part,
                range(steps),
                max_new_tokens=steps,
                stop_ids=frozenset([NEVER]),
            )
        return {"tokens": np.array(written)}

    return work


if __name__ == "__main__":
    main(
        {"batched": partial(patched, together=True), "one by one": partial(patched, together=False)}
    )
