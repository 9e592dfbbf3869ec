"""Greedy runs that remember what every head did at every step, and greedy runs patched from them.

Step s of a run is the forward pass whose logits give its generated token s: its query is the last
token of the prompt (s = 0) or generated token s - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from mechdistill.models.batching import left_pad
from mechdistill.models.cache import roomy_cache
from mechdistill.models.generate import until
from mechdistill.models.shared_prefix import SharedPrefix, own_positions
from mechdistill.models.tap import Intervention, Site, Tap


@dataclass(frozen=True)
class Recorded:
    """One example's greedy run.

    Args:
        prompt: token ids.
        tokens: generated ids, the end of sequence included where it was reached.
        cache: layer -> keys and values [1, KV, prompt + steps - 1, D].
        pattern: per step, layer -> attention rows [1, H, 1, prompt + step].
        output: per step, layer -> mixed values [1, H, 1, D].
    """

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    cache: tuple[tuple[Tensor, Tensor], ...]
    pattern: tuple[dict[int, Tensor], ...]
    output: tuple[dict[int, Tensor], ...]

    def donors(self, site: Site, step: int) -> dict[int, Tensor]:
        """What a patch puts in at a step."""
        return self.pattern[step] if site == "pattern" else self.output[step]


@torch.inference_mode()
def record_greedy(
    model: Any, prompts: Sequence[Sequence[int]], *, max_new_tokens: int, eos_id: int, pad_id: int
) -> list[Recorded]:
    """Greedy runs of the prompts in one batch; a long common beginning is read once."""
    batch = left_pad(prompts, pad_id)
    prefix = SharedPrefix.of(model, prompts)
    cache = DynamicCache() if prefix is None else prefix.cache(batch.mask)
    known = 0 if prefix is None else prefix.length
    mask = batch.mask[:, :-1]
    if batch.ids.shape[1] > 1 + known:
        model(
            batch.ids[:, known:-1],
            attention_mask=mask,
            # counted from each prompt's own start: the cached keys outlive the padding
            position_ids=own_positions(mask)[:, known:],
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
        )
    tokens = batch.ids[:, -1:]
    new: list[Tensor] = []
    steps: list[Tap] = []
    finished = torch.zeros(len(prompts), dtype=torch.bool)
    for step in range(max_new_tokens):
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
        tap = Tap(torch.full((len(prompts), 1), batch.ids.shape[1] - 1 + step))
        output = model(
            tokens,
            attention_mask=mask,
            position_ids=mask.sum(1, keepdim=True) - 1,
            cache=cache,
            use_cache=True,
            tap=tap,
        )
        tokens = output.logits[:, -1:].argmax(-1)
        new.append(tokens)
        steps.append(tap)
        finished |= tokens[:, 0] == eos_id
        if finished.all():
            break
    layers: Any = cache.layers
    generated = torch.cat(new, dim=1).tolist()
    return [
        _alone(
            row,
            prompts[row],
            until(generated[row], frozenset([eos_id])),
            int(batch.offset[row]),
            layers,
            steps,
        )
        for row in range(len(prompts))
    ]


def _alone(
    row: int,
    prompt: Sequence[int],
    tokens: list[int],
    pads: int,
    layers: Any,
    steps: Sequence[Tap],
) -> Recorded:
    """One row of the batch without its padding and without what came after its end."""
    one = slice(row, row + 1)
    stop = pads + len(prompt) + len(tokens) - 1
    records = [tap.record for tap in steps[: len(tokens)]]
    return Recorded(
        tuple(prompt),
        tuple(tokens),
        tuple((layer.keys[one, :, pads:stop], layer.values[one, :, pads:stop]) for layer in layers),
        tuple({i: r.rows[one, ..., pads:] for i, r in record.items()} for record in records),
        tuple({i: r.mixed[one] for i, r in record.items()} for record in records),
    )


@torch.inference_mode()
def patched_greedy(
    model: Any,
    recipient: Recorded,
    donor: Recorded,
    site: Site,
    heads: Tensor,
    steps: range,
    *,
    max_new_tokens: int,
    stop_ids: frozenset[int],
) -> list[list[int]]:
    """Greedy runs on the recipient's prompt with heads replaced by the donor's, one a condition.

    Before the first patched step nothing differs from the recipient's own run, which is continued
    from there. Beyond the donor's end nothing is patched. Keys and values of later steps are those
    of the patched run.

    Args:
        recipient, donor: runs on prompts of equal length.
        heads: the heads replaced in each condition [N, L, H].
        steps: the steps at which they are replaced, an interval.
        stop_ids: a run ends with any of these tokens.

    Returns:
        generated ids of each condition, the stopping token included.
    """
    if len(recipient.prompt) != len(donor.prompt):
        raise ValueError("a patch needs prompts of equal length")
    count = len(heads)
    kept = list(recipient.tokens[: steps.start])
    if len(steps) == 0 or len(kept) < steps.start or stop_ids & set(kept):
        whole = until(list(recipient.tokens[:max_new_tokens]), stop_ids)
        return [whole] * count

    known = len(recipient.prompt) - 1 + steps.start
    prefix = [(keys[:, :, :known], values[:, :, :known]) for keys, values in recipient.cache]
    cache = roomy_cache(prefix, count, len(recipient.prompt) + max_new_tokens)
    last = (recipient.prompt + recipient.tokens)[known]
    tokens = torch.full((count, 1), last)
    new = []
    finished = torch.zeros(count, dtype=torch.bool)
    stops = torch.tensor(sorted(stop_ids))
    for step in range(steps.start, max_new_tokens):
        tap = None
        if step in steps and step < len(donor.tokens):
            patch = Intervention(site, heads[:, None], donor.donors(site, step))
            queries = torch.full((count, 1), len(recipient.prompt) - 1 + step)
            tap = Tap(queries, interventions=(patch,), recording=False)
        output = model(tokens, cache=cache, use_cache=True, tap=tap)
        tokens = output.logits[:, -1:].argmax(-1)
        new.append(tokens)
        finished |= torch.isin(tokens[:, 0], stops)
        if finished.all():
            break
    rows = torch.cat(new, dim=1).tolist()
    return [kept + until(row, stop_ids) for row in rows]
