"""How surely a model takes the decisions of the reasoning, read on the teacher's own trace.

Students are read on the teacher's trace (teacher forcing), since decisions can only be compared at
the same position after the same words. One forward pass gives the margins at decision events and
the likelihood of the trace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from mechdistill.evaluate.perplexity import IGNORED, negative_log_likelihood
from mechdistill.evaluate.score_rows import score_rows
from mechdistill.models.batching import left_pad
from mechdistill.models.margin import decision_margin
from mechdistill.progress import track
from mechdistill.traces.parse import Event, Trace


@torch.inference_mode()
def forced_scores(
    model: Any, traces: Sequence[Trace], pad_id: int, batch_size: int
) -> pd.DataFrame:
    """Margins at events and likelihood of each trace under `model`.

    Returns:
        rows (example, metric, value): `margin_KIND`, the logit of the right choice less the highest
        of its rivals, and `accuracy_KIND`, means over the example's events of that kind (region,
        within, departure; those of the answer list, KIND_answer, apart), absent where it has none;
        `perplexity_nll`, in nats, with `n_tokens`.
    """
    rows: list[tuple[str, str, float]] = []
    for start in track(range(0, len(traces), batch_size), f"scoring, batch of {batch_size}"):
        group = traces[start : start + batch_size]
        batch = left_pad([trace.tokens for trace in group], pad_id)
        logits = model(batch.ids, attention_mask=batch.mask).logits
        nll = negative_log_likelihood(logits[:, :-1], _targets(group, batch.ids, batch.offset))
        for i, trace in enumerate(group):
            rows += [
                (trace.example, "perplexity_nll", float(nll[i])),
                (trace.example, "n_tokens", float(len(trace.tokens) - trace.prompt_length)),
            ]
            rows += [
                (trace.example, metric, value)
                for metric, value in _event_means(logits[i, int(batch.offset[i]) :], trace.events)
            ]
    return score_rows(rows)


def _event_means(logits: Tensor, events: Sequence[Event]) -> list[tuple[str, float]]:
    """Mean margin and accuracy by kind of event from one sequence's logits [T, V]."""
    margins: dict[str, list[float]] = defaultdict(list)
    for event in events:
        if not event.foils:  # nothing in the context to decide against
            continue
        kind = event.kind + ("_answer" if event.segment == "answer" else "")
        margin = decision_margin(
            logits[event.query], torch.tensor(event.target), torch.tensor(event.foils)
        )
        margins[kind].append(float(margin))
    return [
        (f"{name}_{kind}", value)
        for kind, values in sorted(margins.items())
        for name, value in (
            ("margin", float(np.mean(values))),
            ("accuracy", float(np.mean(np.array(values) > 0))),
        )
    ]


def _targets(traces: Sequence[Trace], ids: Tensor, offset: Tensor) -> Tensor:
    """Next-token targets [B, T - 1], counted within the trace only."""
    targets = ids[:, 1:].clone()
    for i, trace in enumerate(traces):
        targets[i, : int(offset[i]) + trace.prompt_length - 1] = IGNORED
    return targets
