"""All variants of RefineScore and its factors, of one layer at a time (phase 2)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from mechdistill.heads.coarse import attention_mass
from mechdistill.heads.reading import Reading, slot_mean, widened
from mechdistill.heads.refine import (
    attended_mixed,
    helpfulness,
    helpfulness_cosine,
    loop_back,
    refine_score,
)
from mechdistill.models.margin import margin_gradient, total_margin_gradients
from mechdistill.models.tap import head_writes, unrotate


class RefinementScores:
    """Scores of a reading's heads at its refinement positions.

    `refine` is Eq. 3 with the gradient at h_final, a head's direct effect on the margin of the
    clause's own pair. Variants of one factor: `_total` takes the gradient at the residual after
    the head's layer, later layers included; `_all_labels` the margin of Eq. 7 over all labels of
    the example; `_attended` the write of the attended shortlist mentions only; `_prerotary`
    queries and keys before the rotary embedding; `_matched` mentions matched on distance.
    `loop...` and `help...` are the factors alone, `help_cosine` as Figure 7 shows it;
    `attended_share` is the share of positions with an attended mention. Baselines that look at
    attention alone: `attention_cue`, mass on the clause's cue, and `attention_loop`, mass on
    shortlist minus mass on near-miss mentions. Names ending in `_at_verdict` look at the first
    refinement position of each clause only, where its decision falls.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        used = reading.refine >= 0
        self._where = {"": used, "_at_verdict": used & _first_of_clause(reading)}
        self._sets = reading.shortlist()
        self._matched = reading.shortlist(matched=True)
        model, pair = reading.model, reading.pair_ids()
        with torch.no_grad():
            self._direct = margin_gradient(model, reading.h_final, *pair)
            self._all_labels = margin_gradient(model, reading.h_final, *reading.label_ids())
        if reading.trunk is None:
            raise ValueError("the reading was not asked to keep its keys and values")
        total = total_margin_gradients(model, reading.trunk, reading.refine, *pair)
        self._total = widened(total.detach())

    def of_layer(self, layer: int) -> Iterator[tuple[str, str, str, Tensor]]:
        """Score, "" (no anchor space), "" (sinks stay) and the heads' means [B, H]."""
        values = self._loops(layer) | self._helps(layer) | self._attention(layer)
        loop, help_ = values["loop"], values["help"]
        values["refine"] = refine_score(loop, help_)
        for variant in ("prerotary", "matched"):
            values[f"refine_{variant}"] = refine_score(values[f"loop_{variant}"], help_)
        for variant in ("total", "all_labels", "attended"):
            values[f"refine_{variant}"] = refine_score(loop, values[f"help_{variant}"])
        for score, by_slot in values.items():
            for suffix, slots in self._where.items():
                yield score + suffix, "", "", slot_mean(by_slot, slots)

    def _loops(self, layer: int) -> dict[str, Tensor]:
        model, reading = self._reading.model, self._reading
        query, (key, _) = reading.refine_queries(layer), reading.at_mentions(layer)
        unrotated = (
            unrotate(model, layer, query, reading.refine),
            unrotate(model, layer, key, reading.mentions),
        )
        return {
            "loop": loop_back(query, key, *self._sets),
            "loop_matched": loop_back(query, key, *self._matched),
            "loop_prerotary": loop_back(*unrotated, *self._sets),
        }

    def _helps(self, layer: int) -> dict[str, Tensor]:
        writes = self._reading.refine_writes(layer)
        _, value = self._reading.at_mentions(layer)
        rows = self._reading.rows_at_mentions(layer)
        mixed, attended = attended_mixed(rows, value, self._sets[0])
        all_mixed = self._reading.records[layer].mixed[:, :, self._reading.early.shape[1] :]
        writes_there = head_writes(self._reading.model, layer, mixed, run=all_mixed)
        attended_writes = widened(writes_there)
        return {
            "help": helpfulness(writes, self._direct),
            "help_cosine": helpfulness_cosine(writes, self._direct),
            "help_total": helpfulness(writes, self._total[layer]),
            "help_all_labels": helpfulness(writes, self._all_labels),
            "help_attended": helpfulness(attended_writes, self._direct),
            "attended_share": attended.to(writes.dtype),
        }

    def _attention(self, layer: int) -> dict[str, Tensor]:
        rows = self._reading.rows_at_mentions(layer)
        kept, rejected = (attention_mass(rows, members) for members in self._sets)
        return {
            "attention_cue": self._reading.cue_mass(layer),
            "attention_loop": kept - rejected,
        }


def _first_of_clause(reading: Reading) -> Tensor:
    """bool [B, R]."""
    first = torch.zeros_like(reading.refine, dtype=torch.bool)
    for row, places in enumerate(reading.places):
        clauses = [at.clause for at in places.refine]
        first[row, [clauses.index(clause) for clause in set(clauses)]] = True
    return first
