"""All variants of CoarseScore and its factors, of one layer at a time (phase 1)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from mechdistill.heads.anchors import ANCHOR_SPACES
from mechdistill.heads.coarse import (
    anchor_alignment,
    attention_mass,
    coarse_score,
    drop_sinks,
    kurtosis,
    kurtosis_as_printed,
    log_kurtosis,
)
from mechdistill.heads.reading import Reading, slot_mean


class EarlyScores:
    """Scores of a reading's heads at its early positions.

    `coarse` is Eq. 1; `coarse_log` and `coarse_literal` take the other two scales of kurtosis;
    `kurtosis`, `kurtosis_log`, `kurtosis_literal` and `cosine` are the factors alone. Names ending
    in `_at_events` look at the positions only at which the trace picks a region. Baselines that
    look at attention alone: `attention_evidence`, mass on the supporting findings, and
    `attention_other`, mass that as many other prompt tokens, drawn at random, hold on average.

    Args:
        reading: of a batch of traces.
        minimum_keys: see `mechdistill.heads.coarse.kurtosis`.
    """

    def __init__(self, reading: Reading, minimum_keys: int) -> None:
        self._reading = reading
        self._minimum_keys = minimum_keys
        used = reading.early >= 0
        events = reading.batch.positions([places.region_events for places in reading.places])
        at_events = (reading.early[..., None] == events[:, None]).any(-1) & used
        self._where = {"": used, "_at_events": at_events}
        self._sinks = reading.sinks()
        self._evidence = reading.keys([places.evidence for places in reading.places])
        prompt = reading.keys([range(places.prompt_length) for places in reading.places])
        self._others = prompt & ~self._evidence & ~self._sinks[:, 0, 0]

    def of_layer(self, layer: int) -> Iterator[tuple[str, str, str, Tensor]]:
        """Score, anchor space, sinks and the heads' means over positions [B, H]."""
        rows, visible = self._reading.early_rows(layer)
        writes = self._reading.early_writes(layer)
        sharpness = {
            "in": self._sharpness(rows, visible),
            "out": self._sharpness(*drop_sinks(rows, visible, self._sinks)),
        }
        for sinks, scales in sharpness.items():
            for scale, kappa in scales.items():
                yield from self._means(f"kurtosis{scale}", "", sinks, kappa)
        for anchor in ANCHOR_SPACES:
            cosine = anchor_alignment(writes, self._reading.anchor(anchor, layer))
            yield from self._means("cosine", anchor, "", cosine)
            for sinks, scales in sharpness.items():
                for scale, kappa in scales.items():
                    score = coarse_score(kappa, cosine)
                    yield from self._means(f"coarse{scale}", anchor, sinks, score)
        evidence = attention_mass(rows, self._evidence[:, None])
        # the expectation over random draws of as many tokens, without drawing
        share = self._evidence.sum(-1) / self._others.sum(-1).clamp_min(1)
        other = attention_mass(rows, self._others[:, None]) * share[:, None, None]
        other = other.masked_fill(share[:, None, None] == 0, torch.nan)  # no number to match
        yield from self._means("attention_evidence", "", "", evidence)
        yield from self._means("attention_other", "", "", other)

    def _sharpness(self, rows: Tensor, visible: Tensor) -> dict[str, Tensor]:
        kappa = kurtosis(rows, visible, minimum_keys=self._minimum_keys)
        literal = kurtosis_as_printed(rows, visible, minimum_keys=self._minimum_keys)
        return {"": kappa, "_log": log_kurtosis(kappa), "_literal": literal}

    def _means(
        self, score: str, anchor: str, sinks: str, values: Tensor
    ) -> Iterator[tuple[str, str, str, Tensor]]:
        for suffix, slots in self._where.items():
            yield score + suffix, anchor, sinks, slot_mean(values, slots)
