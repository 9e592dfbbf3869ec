"""How early the region of a decision can be read off the residual stream, by a linear probe."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from mechdistill.heads.resampling import Floats, interval, plain_and_resampled, weighted_means
from mechdistill.models.batching import left_pad
from mechdistill.models.residuals import reading_residuals
from mechdistill.patching.undecided import with_room
from mechdistill.progress import track
from mechdistill.traces.parse import Trace

PROBE = (
    *("offset", "layer", "accuracy", "ci_low", "ci_high", "shuffled", "majority"),
    *("gain", "gain_low", "gain_high", "n", "notes", "n_train", "regions", "unseen"),
    *("named", "near"),
)
"""Columns of the table."""
ITERATIONS = 2000
"""Of the solver: far more than standardised features need."""


@torch.inference_mode()
def residuals_at(
    model: Any,
    traces: Sequence[Trace],
    places: Sequence[tuple[str, int]],
    *,
    pad_id: int,
    batch_size: int,
) -> NDArray[np.float32]:
    """The residual stream at positions of traces.

    Args:
        places: example and position.

    Returns:
        [places, layers + 1, d]: where it enters each layer, and where the last one leaves it.
    """
    if not places:
        return np.empty((0, model.config.num_hidden_layers + 1, 0), np.float32)
    wanted = {name: sorted({p for own, p in places if own == name}) for name, _ in places}
    chosen = [trace for trace in traces if trace.example in wanted]
    found: dict[tuple[str, int], NDArray[np.float32]] = {}
    for start in range(0, len(chosen), batch_size):
        part = chosen[start : start + batch_size]
        own = [wanted[trace.example] for trace in part]
        batch = left_pad([t.tokens[: p[-1] + 1] for t, p in zip(part, own)], pad_id, model.device)
        at = batch.positions(own)
        row, slot = (at >= 0).nonzero(as_tuple=True)
        column = at[row, slot]
        keep = partial(_at, row=row, column=column)
        with reading_residuals(model, keep) as stream:
            model(batch.ids, attention_mask=batch.mask, use_cache=False, logits_to_keep=1)
        values = torch.stack([*stream.entering, keep(stream.final)], dim=1).float().cpu()
        keys = [(t.example, p) for t, positions in zip(part, own) for p in positions]
        found |= dict(zip(keys, values.numpy(), strict=True))
    return np.stack([found[place] for place in places])


def _at(stream: Tensor, row: Tensor, column: Tensor) -> Tensor:
    return stream[row, column]


def probe_regions(
    model: Any,
    traces: Sequence[Trace],
    found: pd.DataFrame,
    *,
    depth: int,
    resamples: int,
    seed: int,
    pad_id: int,
    batch_size: int,
) -> pd.DataFrame:
    """Probes at each offset and layer, trained on ranking notes and tested on patching notes.

    Args:
        traces: of both splits.
        found: events of `mechdistill.patching.undecided.undecided`.
        depth: the largest offset.
        resamples, seed: of the bootstrap over tested notes; the seed draws the shuffled labels too.

    Returns:
        offset (0: at the event's query), layer (0: embedding, L: after the last), accuracy of the
        probe with ci_low and ci_high, shuffled (accuracy of a probe of shuffled training labels),
        majority (of the most frequent training region), gain (accuracy less the larger of the two)
        with gain_low and gain_high, n (tested events), notes, n_train (events), regions (in
        training), unseen (tested events of other regions: no probe can be right), named and near
        (tested split's events that are left out: region named before; no room). Without rows where
        either split has no event, or training has one region.
    """
    rng = np.random.default_rng([seed, 9])
    records = []
    tested = found[found["split"] == "patching"]
    for offset in track(range(depth + 1), "offset"):
        rows = with_room(found, offset)
        train, test = (rows[rows["split"] == split] for split in ("ranking", "patching"))
        if train["region"].nunique() < 2 or test.empty:
            continue
        features = [
            residuals_at(
                model,
                traces,
                [(n, int(q) - offset) for n, q in zip(r["example"], r["query"], strict=True)],
                pad_id=pad_id,
                batch_size=batch_size,
            )
            for r in (train, test)
        ]
        labels = train["region"].to_numpy(str), test["region"].to_numpy(str)
        shuffled = rng.permutation(labels[0])
        names, counts = np.unique(labels[0], return_counts=True)
        plain = labels[1] == names[counts.argmax()]
        for layer in range(features[0].shape[1]):
            seen, asked = features[0][:, layer], features[1][:, layer]
            right = predicted(seen, labels[0], asked) == labels[1]
            control = predicted(seen, shuffled, asked) == labels[1]
            records.append(
                {
                    **{"offset": offset, "layer": layer},
                    **_accuracy(test["example"], right, control, plain, resamples, seed),
                    **{"n": len(test), "notes": test["example"].nunique()},
                    **{"n_train": len(train), "regions": len(names)},
                    **{"unseen": int((~np.isin(labels[1], names)).sum())},
                    **{"named": int(tested["named"].sum())},
                    **{"near": int((~tested["named"] & (tested["room"] < offset)).sum())},
                }
            )
    return pd.DataFrame.from_records(records, columns=list(PROBE))


def predicted(
    features: NDArray[np.float32], labels: NDArray[np.str_], asked: NDArray[np.float32]
) -> NDArray[np.str_]:
    """Classes that a logistic regression of standardised features gives; C = 1 throughout."""
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=ITERATIONS))
    probe.fit(features.astype(np.float64), labels)
    classes: NDArray[np.str_] = probe.predict(asked.astype(np.float64))
    return classes


def _accuracy(
    examples: pd.Series,
    right: NDArray[np.bool_],
    control: NDArray[np.bool_],
    plain: NDArray[np.bool_],
    resamples: int,
    seed: int,
) -> dict[str, float]:
    """Means over notes of their means over events, and what lies above the larger control."""
    table = pd.DataFrame({"right": right, "control": control, "plain": plain}).astype(float)
    by_note = table.groupby(examples.to_numpy()).mean().to_numpy()
    means: Floats = weighted_means(by_note, plain_and_resampled(len(by_note), resamples, seed))
    gain = means[:, 0] - means[:, 1:].max(axis=1)
    (low, high), (gain_low, gain_high) = interval(means[1:, :1]), interval(gain[1:, None])
    return {
        **{"accuracy": means[0, 0], "ci_low": low[0], "ci_high": high[0]},
        **{"shuffled": means[0, 1], "majority": means[0, 2]},
        **{"gain": gain[0], "gain_low": gain_low[0], "gain_high": gain_high[0]},
    }
