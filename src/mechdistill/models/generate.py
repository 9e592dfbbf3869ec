"""Greedy decoding and sampling in left-padded batches with a key-value cache.

Written by hand, not ``model.generate``, since that refuses keyword arguments such as a tap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from mechdistill.models.batching import Batch, left_pad
from mechdistill.models.shared_prefix import SharedPrefix, own_positions
from mechdistill.progress import track


@torch.no_grad()
def greedy(
    model: Any,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    eos_id: int,
    pad_id: int,
    batch_size: int,
    what: str,
) -> list[list[int]]:
    """Greedy continuations of the prompts, in their order.

    What all prompts begin with is read once, if it is long (`mechdistill.models.shared_prefix`).

    Args:
        max_new_tokens: at most so many tokens a prompt.
        what: names the loop in the progress lines ("teacher trace").

    Returns:
        new token ids of each prompt, up to and including ``eos_id`` where it was reached.
    """
    decode = partial(
        _decode, model, max_new_tokens=max_new_tokens, eos_id=eos_id, choose=_likeliest
    )
    return _in_batches(model, decode, prompts, pad_id, batch_size, what)


@torch.no_grad()
def sampled(
    model: Any,
    prompts: Sequence[Sequence[int]],
    *,
    temperature: float,
    seed: int,
    max_new_tokens: int,
    eos_id: int,
    pad_id: int,
    batch_size: int,
    what: str,
) -> list[list[int]]:
    """One continuation of each prompt, drawn token by token; the rest is as in `greedy`.

    Args:
        temperature: logits are divided by it.
        seed: of the draws. A prompt's draws depend on those before it in its batch, too.
    """
    generator = torch.Generator().manual_seed(seed)

    def drawn(logits: Tensor) -> Tensor:
        shares = (logits.float() / temperature).softmax(-1)
        return torch.multinomial(shares, 1, generator=generator)

    decode = partial(_decode, model, max_new_tokens=max_new_tokens, eos_id=eos_id, choose=drawn)
    return _in_batches(model, decode, prompts, pad_id, batch_size, what)


def _in_batches(
    model: Any,
    decode: Callable[[Batch, SharedPrefix | None], list[list[int]]],
    prompts: Sequence[Sequence[int]],
    pad_id: int,
    batch_size: int,
    what: str,
) -> list[list[int]]:
    continuations: list[list[int]] = []
    prefix = SharedPrefix.of(model, prompts)
    starts = range(0, len(prompts), batch_size)
    for start in track(starts, f"{what}, batch of {batch_size}"):
        batch = left_pad(prompts[start : start + batch_size], pad_id)
        continuations += decode(batch, prefix)
    return continuations


def _likeliest(logits: Tensor) -> Tensor:
    return logits.argmax(-1, keepdim=True)


def _decode(
    model: Any,
    batch: Batch,
    prefix: SharedPrefix | None,
    *,
    max_new_tokens: int,
    eos_id: int,
    choose: Callable[[Tensor], Tensor],
) -> list[list[int]]:
    """Continuations of one batch; `choose` takes logits [B, V] and gives tokens [B, 1]."""
    # without the configuration: keeps every key in every layer
    cache = DynamicCache() if prefix is None else prefix.cache(batch.mask)
    mask = batch.mask
    tokens = batch.ids if prefix is None else batch.ids[:, prefix.length :]
    new = []
    finished = torch.zeros(len(tokens), dtype=torch.bool)
    for _ in range(max_new_tokens):
        # the keys of a shared beginning were turned by positions from its own start
        own = {} if prefix is None else {"position_ids": own_positions(mask)[:, -tokens.shape[1] :]}
        output = model(
            tokens, attention_mask=mask, cache=cache, use_cache=True, logits_to_keep=1, **own
        )
        tokens = choose(output.logits[:, -1])
        new.append(tokens)
        finished |= tokens[:, 0] == eos_id
        if finished.all():
            break
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
    return [until(row, frozenset([eos_id])) for row in torch.cat(new, dim=1).tolist()]


def until(tokens: list[int], stops: frozenset[int]) -> list[int]:
    """The tokens up to and including the first one that stops a run."""
    for index, token in enumerate(tokens):
        if token in stops:
            return tokens[: index + 1]
    return tokens
