"""Every score of one trace by loops over heads and positions, from eager attention.

Independent of the tap: one unpadded sequence, transformers' eager attention with returned weights,
slices of the projection matrices, autograd for the gradients, scipy for the kurtosis.
"""

from __future__ import annotations

import copy
import math

import numpy as np
import scipy.stats
import torch
from transformers import LlamaForCausalLM
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb


class SlowOracle:
    def __init__(self, model, places):
        config = copy.deepcopy(model.config)
        config._attn_implementation = "eager"
        self.model = LlamaForCausalLM(config).eval()
        self.model.load_state_dict(model.state_dict())
        self.places = places
        self.heads, self.group = config.num_attention_heads, config.num_key_value_heads
        self.layers, self.width = config.num_hidden_layers, config.head_dim
        self.residual_after: list[torch.Tensor] = []
        for block in self.model.model.layers:
            block.register_forward_hook(lambda m, a, out: self._keep(out))
        self._run(places.tokens)

    def _keep(self, output):
        residual = output[0] if isinstance(output, tuple) else output
        if residual.requires_grad:
            residual.retain_grad()
        self.residual_after.append(residual)

    def _run(self, tokens):
        self.residual_after.clear()
        ids = torch.tensor([tokens])
        self.output = self.model(ids, output_attentions=True, use_cache=False)
        embedded = self.model.model.embed_tokens(ids)
        self.entering = [embedded, *self.residual_after[:-1]]

    def row(self, layer, head, q):
        return self.output.attentions[layer][0, head, q, : q + 1].detach().double()

    def _normed(self, layer):
        return self.model.model.layers[layer].input_layernorm(self.entering[layer])[0].detach()

    def _projected(self, layer, which, head):
        index = head if which == "q" else head // (self.heads // self.group)
        weight = getattr(self.model.model.layers[layer].self_attn, f"{which}_proj").weight
        return self._normed(layer) @ weight[index * self.width : (index + 1) * self.width].T

    def query_key(self, layer, head, *, rotary=True):
        q, k = self._projected(layer, "q", head), self._projected(layer, "k", head)
        if rotary:
            at = torch.arange(len(q))[None]
            cos, sin = self.model.model.rotary_emb(q[None], at)
            q, k = (x[0, 0] for x in apply_rotary_pos_emb(q[None, None], k[None, None], cos, sin))
        return q.detach().double(), k.detach().double()

    def write(self, layer, head, q, keys=None):
        """Delta^h(q), of all keys or of some."""
        row = self.row(layer, head, q)
        value = self._projected(layer, "v", head).double()
        keys = range(q + 1) if keys is None else keys
        mixed = sum((row[p] * value[p] for p in keys), torch.zeros(self.width).double())
        projection = self.model.model.layers[layer].self_attn.o_proj.weight.double()
        return (projection[:, head * self.width : (head + 1) * self.width] @ mixed).detach()

    def direct_gradient(self, q, targets, foils):
        h = self.residual_after[-1][0, q].detach().clone().requires_grad_()
        logits = self.model.lm_head(self.model.model.norm(h))
        margin = logits[list(targets)].mean() - logits[list(foils)].mean()
        margin.backward()
        return h.grad.double(), margin.item()

    def total_gradients(self, q, target, foil):
        """One a layer, from the sequence cut after q: nothing else can leak in."""
        self._run(self.places.tokens[: q + 1])
        logits = self.output.logits[0, q]
        (logits[target] - logits[foil]).backward()
        gradients = [residual.grad[0, q].double() for residual in self.residual_after]
        self._run(self.places.tokens)
        return gradients

    def anchor(self, space, layer):
        p = self.places
        if space == "context":
            return self.entering[layer][0, list(p.anchor_mentions)].mean(0).detach().double()
        matrix = self.model.lm_head if space == "unembed" else self.model.model.embed_tokens
        rows = matrix.weight.detach().double()
        mean = torch.stack([rows[list(ids)].mean(0) for ids in p.anchors]).mean(0)
        if space == "embed":
            return mean
        return (mean - rows.mean(0)) * self.model.model.norm.weight.detach().double()

    def kurtosis(self, layer, head, q, sinks):
        row = self.row(layer, head, q)
        if sinks == "out":
            kept = [p for p in range(q + 1) if p not in self.places.sinks]
            row = row[kept] / row[kept].sum()
        return row.numpy()

    def phase_1(self, layer, head):
        """(score, anchor, sinks) -> mean over early positions."""
        found = {}
        cosines = {
            (space, q): cosine(self.write(layer, head, q), self.anchor(space, layer))
            for space in ("unembed", "embed", "context")
            for q in self.places.early
        }
        for suffix, positions in (
            ("", self.places.early),
            ("_at_events", self.places.region_events),
        ):
            for sinks in ("in", "out"):
                rows = {q: self.kurtosis(layer, head, q, sinks) for q in positions}
                for scale, kappa in (
                    ("", lambda row: scipy.stats.kurtosis(row)),
                    ("_log", lambda row: math.log10(1 + max(scipy.stats.kurtosis(row), 0))),
                    ("_literal", literal_kurtosis),
                ):
                    kappas = {q: kappa(rows[q]) for q in positions}
                    found[f"kurtosis{scale}{suffix}", "", sinks] = np.mean(list(kappas.values()))
                    for space in ("unembed", "embed", "context"):
                        products = [kappas[q] * cosines[space, q] for q in positions]
                        found[f"coarse{scale}{suffix}", space, sinks] = np.mean(products)
            for space in ("unembed", "embed", "context"):
                values = [cosines[space, q] for q in positions]
                found[f"cosine{suffix}", space, ""] = np.mean(values)
            p = self.places
            others = set(range(p.prompt_length)) - set(p.evidence) - set(p.sinks)
            evidence, other = [], []
            for q in positions:
                row = self.row(layer, head, q).numpy()
                evidence.append(sum(row[k] for k in p.evidence))
                other.append(sum(row[k] for k in others) * len(p.evidence) / len(others))
            found[f"attention_evidence{suffix}", "", ""] = np.mean(evidence)
            found[f"attention_other{suffix}", "", ""] = np.mean(other)
        return found

    def phase_2(self, layer, head, totals, matched):
        """(score, "", "") -> mean over refinement positions; `matched` pairs the mentions."""
        lists = {}

        seen = set()
        for index, at in enumerate(self.places.refine):
            suffixes = ("",) if at.clause in seen else ("", "_at_verdict")
            seen.add(at.clause)

            def add(name, value, suffixes=suffixes):
                for suffix in suffixes:
                    lists.setdefault((name + suffix, "", ""), []).append(value)

            row = self.row(layer, head, at.query)
            direct, _ = self.direct_gradient(at.query, [at.target], [at.foil])
            labels, _ = self.direct_gradient(at.query, self.places.gold, self.places.near)
            attended = [p for p in at.shortlist if row[p] > 0.3]
            write = self.write(layer, head, at.query)
            helps = {
                "help": float(write @ direct),
                "help_total": float(write @ totals[index][layer]),
                "help_all_labels": float(write @ labels),
                "help_attended": float(self.write(layer, head, at.query, attended) @ direct),
            }
            loops = {}
            for name, rotary, (short, near) in (
                ("loop", True, (at.shortlist, at.near_miss)),
                ("loop_prerotary", False, (at.shortlist, at.near_miss)),
                ("loop_matched", True, matched(at.shortlist, at.near_miss)),
            ):
                query, key = self.query_key(layer, head, rotary=rotary)
                similar = [[cosine(query[at.query], key[p]) for p in s] for s in (short, near)]
                if short and near:
                    loops[name] = np.mean(similar[0]) - np.mean(similar[1])
            for name, value in (helps | loops).items():
                add(name, value)
            add("help_cosine", cosine(write, direct))
            add("attended_share", float(bool(attended)))
            cue = self.places.cues[index]
            if cue:
                add("attention_cue", float(sum(row[p] for p in cue)))
            if at.shortlist and at.near_miss:
                kept, rejected = (
                    float(sum(row[p] for p in s)) for s in (at.shortlist, at.near_miss)
                )
                add("attention_loop", kept - rejected)
                for variant in ("prerotary", "matched"):
                    add(f"refine_{variant}", loops[f"loop_{variant}"] * helps["help"])
                for variant in ("total", "all_labels", "attended"):
                    add(f"refine_{variant}", loops["loop"] * helps[f"help_{variant}"])
                add("refine", loops["loop"] * helps["help"])
        return {name: np.mean(values) for name, values in lists.items()}


def cosine(a, b):
    return float(a @ b / (a.norm() * b.norm()))


def literal_kurtosis(row):
    centred = row - row.mean()
    return float((centred**4).mean() / ((centred**2).mean() + 1e-6) ** 2 - 3)
