"""Eqs. 5 and 6 written from the formulas: eager attention, one head, position and key at a time.

Nothing here comes from the package but the data; everything is differentiable torch.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor

from mechdistill.distil.sequences import TrainingSequence
from mechdistill.heads.pools import Pool, Pools


class SlowModel:
    """One model on one unpadded sequence: attention, queries, keys and writes of single heads."""

    def __init__(self, model: Any, tokens: tuple[int, ...]) -> None:
        config = model.config
        self.heads, self.groups = config.num_attention_heads, config.num_key_value_heads
        self.width = config.hidden_size // self.heads
        self.gain, self.epsilon = model.model.norm.weight, config.rms_norm_eps
        self.read_out = model.lm_head.weight
        theta = config.rope_parameters["rope_theta"]
        eager = model
        implementation = model.config._attn_implementation
        eager.set_attn_implementation("eager")
        try:
            out = eager(
                torch.tensor([tokens]),
                output_attentions=True,
                output_hidden_states=True,
                use_cache=False,
            )
        finally:
            model.set_attn_implementation(implementation)
        self.logits = out.logits[0]
        self.attention = [layer[0] for layer in out.attentions]
        self.queries, self.keys, self.values, self.outputs = [], [], [], []
        count = len(tokens)
        for layer, hidden in zip(model.model.layers, out.hidden_states):
            normed = layer.input_layernorm(hidden[0])
            attention = layer.self_attn
            query = attention.q_proj(normed).view(count, self.heads, self.width)
            key = attention.k_proj(normed).view(count, self.groups, self.width)
            self.queries.append(rotate(query, theta))
            self.keys.append(rotate(key, theta))
            self.values.append(attention.v_proj(normed).view(count, self.groups, self.width))
            self.outputs.append(attention.o_proj.weight)
            stream = hidden[0] + self._attention_output(len(self.values) - 1)
            final = stream + layer.mlp(layer.post_attention_layernorm(stream))
        self.final_residual = final

    def group(self, head: int) -> int:
        return head // (self.heads // self.groups)

    def write(self, layer: int, head: int, q: int) -> Tensor:
        """Delta^h(q) = W_O^h sum_p alpha_qp v_p."""
        mixed = torch.zeros(self.width)
        for p in range(q + 1):
            value = self.values[layer][p, self.group(head)]
            mixed = mixed + self.attention[layer][head, q, p] * value
        columns = slice(head * self.width, (head + 1) * self.width)
        return self.outputs[layer][:, columns] @ mixed

    def similarity(self, layer: int, head: int, q: int, p: int) -> Tensor:
        """cos(q_q, k_p)."""
        return cosine(self.queries[layer][q, head], self.keys[layer][p, self.group(head)])

    def _attention_output(self, layer: int) -> Tensor:
        count = len(self.values[layer])
        return torch.stack(
            [sum(self.write(layer, head, q) for head in range(self.heads)) for q in range(count)]
        )


def rotate(x: Tensor, theta: float) -> Tensor:
    """Rotary embedding of [n, heads, D], halves rotated against each other."""
    half = x.shape[-1] // 2
    frequency = theta ** (-torch.arange(half) / half)
    angle = torch.arange(len(x))[:, None] * frequency
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def cosine(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum() / (a.square().sum().sqrt() * b.square().sum().sqrt())


def members(pool: Pool) -> list[tuple[int, int, float]]:
    return list(zip(pool.layers.tolist(), pool.heads.tolist(), pool.weights.tolist()))


def pooled_row(model: SlowModel, pool: Pool, q: int) -> Tensor:
    """abar_q over keys 1..q: the first key, the sink, dropped and the rest adding to one."""
    row = torch.zeros(q + 1)
    for layer, head, weight in members(pool):
        row = row + weight * model.attention[layer][head, q, : q + 1]
    return row[1:] / row[1:].sum()


def sharpness(row: Tensor) -> Tensor:
    """log10(1 + max(kappa, 0)) of App. B's kurtosis, on the row times its number of keys."""
    n = len(row)
    scaled = [value * n for value in row]
    mean = sum(scaled) / n
    second = sum((value - mean) ** 2 for value in scaled) / n
    fourth = sum((value - mean) ** 4 for value in scaled) / n
    kappa = fourth / (second + 1e-6) ** 2 - 3
    return torch.log10(1 + torch.clamp(kappa, min=0))


def alignment(model: SlowModel, pool: Pool, q: int, anchor: Tensor) -> Tensor:
    write = sum(weight * model.write(layer, head, q) for layer, head, weight in members(pool))
    return cosine(write, anchor)


def loop(model: SlowModel, pool: Pool, q: int, short: tuple[int, ...], near: tuple[int, ...]):
    total = torch.zeros(())
    for layer, head, weight in members(pool):
        to_short = sum(model.similarity(layer, head, q, p) for p in short) / len(short)
        to_near = sum(model.similarity(layer, head, q, p) for p in near) / len(near)
        total = total + weight * (to_short - to_near)
    return total


def help_(
    model: SlowModel, pool: Pool, q: int, target: int, foil: int, frozen: SlowModel, unit: float
) -> Tensor:
    """<Dbar, grad margin> with the read-out of step 0 (`frozen`), nothing behind it trained."""
    write = sum(weight * model.write(layer, head, q) for layer, head, weight in members(pool))
    residual = model.final_residual[q].detach().requires_grad_()
    size = torch.sqrt(residual.square().mean() + frozen.epsilon)
    normed = frozen.gain.detach() * residual / size
    margin = (frozen.read_out[target].detach() - frozen.read_out[foil].detach()) @ normed
    (gradient,) = torch.autograd.grad(margin, residual)
    return write @ gradient / unit


def slow_terms(
    teacher: Any,
    student: Any,
    frozen_student: Any,
    sequences: list[TrainingSequence],
    pools: tuple[Pools, Pools],
    anchors: tuple[dict[str, Tensor], dict[str, Tensor]],
) -> dict[str, Tensor]:
    """The six terms of Eqs. 5 and 6: mean over positions, then over examples that have any."""
    found: dict[str, list[Tensor]] = {}
    for sequence in sequences:
        t, s = SlowModel(teacher, sequence.tokens), SlowModel(student, sequence.tokens)
        frozen = SlowModel(frozen_student, sequence.tokens)
        (pools_t, pools_s), name = pools, sequence.example
        values: dict[str, list[Tensor]] = {}
        for q in sequence.early:
            row_t, row_s = pooled_row(t, pools_t.phase1, q), pooled_row(s, pools_s.phase1, q)
            divergence = sum(
                a * (math.log(max(a, 1e-8)) - b.clamp(min=1e-8).log())
                for a, b in zip(row_t.tolist(), row_s)
            )
            align_t = alignment(t, pools_t.phase1, q, anchors[0][name])
            align_s = alignment(s, pools_s.phase1, q, anchors[1][name])
            score_t, score_s = sharpness(row_t) * align_t, sharpness(row_s) * align_s
            values.setdefault("p1_attention", []).append(divergence)
            values.setdefault("p1_write", []).append((align_t - align_s) ** 2)
            values.setdefault("p1_interaction", []).append((score_s - score_t) ** 2)
        for at in sequence.refine:
            loops = [
                loop(m, p.phase2, at.query, at.shortlist, at.near_miss)
                for m, p in ((t, pools_t), (s, pools_s))
            ]
            helps = [
                help_(m, p.phase2, at.query, at.target, at.foil, f, p.margin_std)
                for m, p, f in ((t, pools_t, t), (s, pools_s, frozen))
            ]
            values.setdefault("p2_loop", []).append((loops[0] - loops[1]) ** 2)
            values.setdefault("p2_write", []).append((helps[0] - helps[1]) ** 2)
            product = (loops[0] * helps[0] - loops[1] * helps[1]) ** 2
            values.setdefault("p2_interaction", []).append(product)
        for key, of_example in values.items():
            found.setdefault(key, []).append(sum(of_example) / len(of_example))
    return {key: sum(of) / len(of) for key, of in found.items()}


def frozen_copy(model: Any) -> Any:
    return copy.deepcopy(model).requires_grad_(False)
