"""Scoring and patching heads with TransformerLens, in a process of its own.

Building a bridge changes attention functions of transformers for the whole process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models
from torch import Tensor
from transformer_lens.model_bridge import TransformerBridge
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from benchmarks.factors import Shown, factors, read_outs
from benchmarks.made_up import (
    VOCABULARY,
    MadeUp,
    corrupted,
    decision,
    head_sets,
    made_up_model,
    made_up_trace,
)
from benchmarks.worker import Work, main

PARTS = ("rot_q", "rot_k", "pattern", "z")


def bridge_of(model: Any) -> Any:
    """The model under TransformerLens, which insists on a tokenizer of some folder."""
    words = {f"w{number}": number for number in range(VOCABULARY)}
    special = {"pad_token": "w0", "bos_token": "w1", "eos_token": "w2", "unk_token": "w0"}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    with tempfile.TemporaryDirectory() as folder:
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        return TransformerBridge.boot_transformers(
            "made-up", hf_model=model, tokenizer=tokenizer, device="cpu"
        )


def cached(setting: Mapping[str, Any]) -> Work:
    """Scores from the cache of the four quantities that are needed, whole patterns among them."""
    torch.set_num_threads(1)
    model, trace, _, layers = _prepared(setting)
    bridge = bridge_of(model)
    wanted = [f"blocks.{layer}.attn.hook_{part}" for layer in layers for part in PARTS]
    wanted.append("ln_final.hook_in")
    ids = torch.tensor([trace.ids])

    @torch.no_grad()
    def work() -> dict[str, np.ndarray]:
        _, cache = bridge.run_with_cache(ids, names_filter=wanted, return_type=None)
        return _scores(trace, model, layers, lambda name: cache[name])

    return work


def sliced(setting: Mapping[str, Any]) -> Work:
    """Scores from hooks that keep the query positions alone: whole patterns of one layer a time."""
    torch.set_num_threads(1)
    model, trace, _, layers = _prepared(setting)
    bridge = bridge_of(model)
    ids = torch.tensor([trace.ids])
    early = list(trace.early)

    @torch.no_grad()
    def work() -> dict[str, np.ndarray]:
        kept: dict[str, Tensor] = {}

        # by the name that was asked for: a hook itself bears the name of what it stands for
        def keep(value: Tensor, hook: Any, name: str) -> None:
            rows = name.endswith("pattern")
            # the other quantities are small: [1, T, H, D]
            kept[name] = value[:, :, early].clone() if rows else value

        names = [f"blocks.{layer}.attn.hook_{part}" for layer in layers for part in PARTS]
        names.append("ln_final.hook_in")
        hooks = [(name, partial(keep, name=name)) for name in names]
        bridge.run_with_hooks(ids, fwd_hooks=hooks, return_type=None)
        return _scores(trace, model, layers, kept.__getitem__, sliced_rows=True)

    return work


def patching(setting: Mapping[str, Any]) -> Work:
    """One run with hooks a condition and direction, heads' outputs put in at the last position."""
    torch.set_num_threads(1)
    model, _, clean, layers = _prepared(setting)
    other = corrupted(clean)
    target, foil = decision(model, clean)
    bridge = bridge_of(model)
    sets = torch.tensor(head_sets(setting["model"], setting["conditions"]))
    names = [f"blocks.{layer}.attn.hook_z" for layer in layers]

    def patched(ids: Sequence[int], donor: Mapping[str, Tensor], heads: Tensor) -> float:
        def put_in(value: Tensor, hook: Any, layer: int) -> Tensor:
            value[:, -1, heads[layer]] = donor[names[layer]][:, -1, heads[layer]]
            return value

        hooks = [(names[layer], partial(put_in, layer=layer)) for layer in layers]
        logits = bridge.run_with_hooks(torch.tensor([ids]), fwd_hooks=hooks)[0, -1]
        return float(logits[target] - logits[foil])

    @torch.inference_mode()
    def work() -> dict[str, np.ndarray]:
        runs = {}
        for ids in (clean, other):
            _, cache = bridge.run_with_cache(
                torch.tensor([ids]), names_filter=names, return_type=None
            )
            runs[ids] = {name: cache[name].clone() for name in names}
        return {
            name: np.array([patched(recipient, runs[donor], heads) for heads in sets])
            for name, donor, recipient in (("denoise", clean, other), ("noise", other, clean))
        }

    return work


def _prepared(setting: Mapping[str, Any]) -> tuple[Any, MadeUp, tuple[int, ...], range]:
    model = made_up_model(setting["model"], "eager")
    trace = made_up_trace(setting["tokens"])
    return model, trace, trace.ids, range(model.config.num_hidden_layers)


def _scores(
    trace: MadeUp,
    model: Any,
    layers: range,
    value: Callable[[str], Tensor],
    *,
    sliced_rows: bool = False,
) -> dict[str, np.ndarray]:
    early, refine, mentions = (list(at) for at in (trace.early, trace.refine, trace.mentions))
    shown = []
    for layer in layers:
        query, key, pattern, mixed = (
            value(f"blocks.{layer}.attn.hook_{part}")[0] for part in PARTS
        )
        shown.append(
            Shown(
                pattern if sliced_rows else pattern[:, early],
                mixed[early + refine].transpose(0, 1),
                query[refine].transpose(0, 1),
                key[mentions].transpose(0, 1),
            )
        )
    anchor, gradient = read_outs(model, value("ln_final.hook_in")[0, refine], trace)
    projections = [block.self_attn.o_proj.weight for block in model.model.layers]
    return factors(shown, projections, anchor, gradient, trace)


if __name__ == "__main__":
    main(
        {
            "TransformerLens": cached,
            "TransformerLens, sliced": sliced,
            "TransformerLens, patching": patching,
        }
    )
