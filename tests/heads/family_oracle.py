"""Scores of any family by loops over heads and positions, from eager attention, without the tap.

Rows are transformers' own returned weights; queries, keys and values are written out from the
projections; a head's write is what the output projection makes of that head's slice alone, times
the scale of the norm behind it; gradients are autograd's.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.stats
import torch

from tests.models.tiny import GROUPS, HEADS, WIDTH, before_rotary, is_gemma, rms_factor, rotary


class FamilyOracle:
    """One unpadded trace.

    Args:
        model: as transformers runs it, with eager attention.
        places: of the trace.
    """

    def __init__(self, model, places):
        self.model, self.places = model, places
        self.blocks = model.model.layers
        self.ids = torch.tensor([places.tokens])
        self.entering, self.mixed, self.attended = {}, {}, {}
        hooks = []
        for layer, block in enumerate(self.blocks):
            attention = block.self_attn
            hooks += [
                attention.register_forward_pre_hook(
                    partial(self._keep_input, layer), with_kwargs=True
                ),
                attention.o_proj.register_forward_hook(partial(self._keep_projected, layer)),
            ]
        with torch.no_grad():
            self.rows = model(self.ids, output_attentions=True).attentions
        for hook in hooks:
            hook.remove()

    def _keep_input(self, layer, module, args, named):
        self.entering[layer] = named["hidden_states"]

    def _keep_projected(self, layer, module, args, output):
        self.mixed[layer], self.attended[layer] = args[0][0], output[0]

    @torch.no_grad()
    def scores(self, layer, head):
        """Factor -> mean over the positions of its phase."""
        lists = {}
        for q in self.places.early:
            for factor, value in self._early(layer, head, q).items():
                lists.setdefault(factor, []).append(value)
        for index, at in enumerate(self.places.refine):
            for factor, value in self._refine(layer, head, index, at).items():
                lists.setdefault(factor, []).append(value)
        return {factor: float(np.mean(values)) for factor, values in lists.items()}

    def _early(self, layer, head, q):
        row = self.rows[layer][0, head, q].double()
        seen = [p for p in self._seen(layer, q) if p not in self.places.sinks]
        kappa = scipy.stats.kurtosis((row[seen] / row[seen].sum()).numpy())
        cosine = _cosine(self._write(layer, head, q), self._anchor())
        return {
            "kurtosis": kappa,
            "cosine": cosine,
            "coarse": kappa * cosine,
            "attention_evidence": float(row[list(self.places.evidence)].sum()),
        }

    def _refine(self, layer, head, index, at):
        q, k, _ = before_rotary(self.blocks[layer].self_attn, self.entering[layer])
        q, k = (rotary(self.model.config, layer, x)[0] for x in (q, k))
        query, keys = q[head, at.query], k[head // (HEADS // GROUPS)]
        similar = [
            np.mean([_cosine(query, keys[p]) for p in s]) for s in (at.shortlist, at.near_miss)
        ]
        loop = similar[0] - similar[1]
        write = self._write(layer, head, at.query)
        gradients = self._gradients(at)
        help_ = float(write @ gradients[-1])
        row = self.rows[layer][0, head, at.query]
        return {
            "loop": loop,
            "help": help_,
            "refine": loop * help_,
            "help_total": float(write @ gradients[layer]),
            "attention_cue": float(row[list(self.places.cues[index])].sum()),
        }

    def _seen(self, layer, q):
        """Keys that transformers let the query see: eager attention gives the others exactly 0."""
        return [p for p in range(q + 1) if self.rows[layer][0, :, q, p].sum() > 0]

    def _write(self, layer, head, q):
        block = self.blocks[layer]
        projection = block.self_attn.o_proj
        alone = torch.zeros(HEADS * WIDTH)
        part = slice(head * WIDTH, (head + 1) * WIDTH)
        alone[part] = self.mixed[layer][q, part]
        write = projection.weight @ alone
        if not is_gemma(self.model.config):
            return write
        norm = block.post_attention_layernorm
        return write * rms_factor(self.attended[layer][q], norm, self.model.config)

    def _anchor(self):
        rows = self.model.lm_head.weight
        gain = self.model.model.norm.weight + is_gemma(self.model.config)
        centroid = torch.stack([rows[list(ids)].mean(0) for ids in self.places.anchors]).mean(0)
        return (centroid - rows.mean(0)) * gain

    @torch.enable_grad()
    def _gradients(self, at):
        """Of the pair's margin at the residual after each layer, from the trace cut after it."""
        after = []
        hooks = [
            block.register_forward_hook(lambda module, args, output: after.append(_stream(output)))
            for block in self.blocks
        ]
        logits = self.model(self.ids[:, : at.query + 1]).logits[0, at.query]
        for hook in hooks:
            hook.remove()
        margin = logits[at.target] - logits[at.foil]
        return [g[0, at.query] for g in torch.autograd.grad(margin, after)]


def _stream(output):
    return output[0] if isinstance(output, tuple) else output


def _cosine(a, b):
    return float(a @ b / (a.norm() * b.norm()))
