"""Largest differences between the tap and transformers' eager attention, by family and quantity.

    python benchmarks/family_accuracy.py

Tiny random models of every family (tests/models/tiny.py: sharp rows, grouped heads, biases, windows
of 8 keys) on left-padded prompts of 17, 23 and 9 tokens. Prints a Markdown table. In fp32 the eager
run is the reference. In bf16 the reference is the eager fp32 run on the same (rounded) weights, and
the eager bf16 run's own distance to it stands in brackets: what the number format alone costs.
"""

import copy
import sys
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))

from mechdistill.models.batching import Batch, left_pad
from mechdistill.models.margin import margin, margin_gradient
from mechdistill.models.residuals import reading_residuals
from mechdistill.models.tap import Tap, attach, head_writes
from tests.models.tiny import LAYERS, MAKERS, added_by_attention, eager_model, inputs_and_outputs

LENGTHS = (17, 23, 9)
TARGETS, FOILS = torch.tensor([[[4], [7], [5]]] * 3), torch.tensor([[[6], [8], [1]]] * 3)
QUANTITIES = ("rows", "mixed values", "writes, summed", "logits", "margin gradient")


def prompts() -> tuple[Batch, Tensor]:
    """The padded prompts and three query positions of each."""
    generator = torch.Generator().manual_seed(0)
    ids = [torch.randint(1, 61, (n,), generator=generator).tolist() for n in LENGTHS]
    return left_pad(ids, 0), left_pad(ids, 0).positions([[2, n // 2, n - 1] for n in LENGTHS])


def at_queries(x: Tensor, queries: Tensor) -> Tensor:
    """[B, T, ...] -> [B, Q, ...]."""
    return torch.stack([row[at] for row, at in zip(x, queries, strict=True)])


@torch.no_grad()
def of_eager(model, batch: Batch, queries: Tensor) -> dict[str, Tensor]:
    """The quantities from returned weights and hooks; the gradient by autograd."""
    output = model(batch.ids, attention_mask=batch.mask, output_attentions=True)
    mixed = inputs_and_outputs(model, batch, "self_attn.o_proj")
    added = added_by_attention(model, batch)
    seen = []
    hook = model.model.norm.register_forward_pre_hook(lambda m, args: seen.append(args[0]))
    model(batch.ids, attention_mask=batch.mask)
    hook.remove()
    with torch.enable_grad():
        residual = at_queries(seen[0], queries).detach().requires_grad_()
        logits = model.lm_head(model.model.norm(residual))
        cap = getattr(model.config, "final_logit_softcapping", None)
        logits = logits if cap is None else torch.tanh(logits / cap) * cap
        (gradient,) = torch.autograd.grad(margin(logits, TARGETS, FOILS).sum(), residual)
    rows = [at_queries(a.transpose(1, 2), queries).transpose(1, 2) for a in output.attentions]
    return {
        "rows": torch.stack(rows),
        "mixed values": torch.stack([at_queries(mixed[i][0][0], queries) for i in range(LAYERS)]),
        "writes, summed": torch.stack([at_queries(added[i], queries) for i in range(LAYERS)]),
        "logits": at_queries(output.logits, queries),
        "margin gradient": gradient,
    }


@torch.no_grad()
def of_tap(model, batch: Batch, queries: Tensor) -> dict[str, Tensor]:
    """The same from one tapped pass."""
    tap = Tap(queries)
    with reading_residuals(model) as stream:
        logits = model(batch.ids, attention_mask=batch.mask, tap=tap).logits
    mixed = [tap.record[layer].mixed for layer in range(LAYERS)]
    writes = [head_writes(model, layer, mixed[layer]).sum(1) for layer in range(LAYERS)]
    residual = at_queries(stream.final, queries)
    return {
        "rows": torch.stack([tap.record[layer].rows for layer in range(LAYERS)]),
        "mixed values": torch.stack([m.transpose(1, 2).flatten(2) for m in mixed]),
        "writes, summed": torch.stack(writes),
        "logits": at_queries(logits, queries),
        "margin gradient": margin_gradient(model, residual, TARGETS, FOILS),
    }


def largest(found: dict[str, Tensor], expected: dict[str, Tensor]) -> dict[str, float]:
    """Largest absolute difference, as a share of the reference's largest absolute value."""
    return {
        name: float((found[name].float() - expected[name]).abs().max() / expected[name].abs().max())
        for name in QUANTITIES
    }


def differences(family: str) -> dict[str, dict[str, float]]:
    """fp32, and bf16 of the tap and of eager attention, by quantity."""
    batch, queries = prompts()
    # a bias belongs to no head: without it the heads' writes add up to what the block adds
    eager = eager_model(family, attention_bias=False)
    tapped = attach(copy.deepcopy(eager))
    results = {"fp32": largest(of_tap(tapped, batch, queries), of_eager(eager, batch, queries))}
    half = copy.deepcopy(eager).bfloat16()
    reference = of_eager(copy.deepcopy(half).float(), batch, queries)
    results["bf16 eager"] = largest(of_eager(half, batch, queries), reference)
    results["bf16"] = largest(of_tap(attach(copy.deepcopy(half)), batch, queries), reference)
    return results


def main() -> None:
    torch.set_num_threads(1)
    print("| family | number format | " + " | ".join(QUANTITIES) + " |")
    print("| --- " * (2 + len(QUANTITIES)) + "|")
    for family in MAKERS:
        found = differences(family)
        exact = " | ".join(f"{found['fp32'][name]:.0e}" for name in QUANTITIES)
        half = " | ".join(
            f"{found['bf16'][name]:.0e} ({found['bf16 eager'][name]:.0e})" for name in QUANTITIES
        )
        print(f"| {family} | fp32 | {exact} |\n| | bf16 (eager) | {half} |")


if __name__ == "__main__":
    main()
