"""Pooled mechanism metrics against the heads' own measurements and slow pooling."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.stats
import torch

from mechdistill.heads.find import find_pools
from mechdistill.heads.measure import measure_heads
from mechdistill.heads.places import all_places
from mechdistill.heads.pools import Pool, Pools
from mechdistill.heads.reading import read
from mechdistill.heads.readout import read_mechanisms
from mechdistill.models.loading import build_model

KEYS = {"minimum_keys": 8, "batch_size": 4}


def pool(phase, *members):
    layers, heads, weights = zip(*members)
    return Pool(phase, torch.tensor(layers), torch.tensor(heads), torch.tensor(weights))


@pytest.fixture(scope="module")
def known(examples, space, tokenizer):
    return examples, space, tokenizer


def metrics_of(model, traces, known, pools):
    frame = read_mechanisms(model, traces, *known, pools, **KEYS)
    return frame.pivot(index="example", columns="metric", values="value")


def test_pool_of_one_head_reads_what_the_head_measures(model, traces, known):
    pools = Pools("teacher", pool(1, (1, 2, 1.0)), pool(2, (2, 3, 1.0)), margin_std=4.0)
    found = metrics_of(model, traces, known, pools)
    values = measure_heads(model, traces, *known, name="teacher", **KEYS).values

    def of_head(phase, layer, head, score, anchor="", sinks=""):
        named = values[["phase", "layer", "head", "score", "anchor", "sinks"]]
        rows = values[(named == [phase, layer, head, score, anchor, sinks]).all(axis=1)]
        return rows.set_index("example")["value"].reindex(found.index).to_numpy()

    for metric, expected in {
        "sharp": of_head(1, 1, 2, "kurtosis_log", sinks="out"),
        "sharp_of_heads": of_head(1, 1, 2, "kurtosis_log", sinks="out"),
        "align": of_head(1, 1, 2, "cosine", "unembed"),
        "loop": of_head(2, 2, 3, "loop"),
        "help": of_head(2, 2, 3, "help_cosine"),
        "help_scaled": of_head(2, 2, 3, "help") / 4.0,
    }.items():
        np.testing.assert_allclose(found[metric], expected, rtol=1e-4, atol=1e-5)


def test_pooled_sharpness_and_alignment_pool_before_they_measure(model, traces, known):
    members = (0, 1, 0.3), (2, 0, 0.7)
    pools = Pools("teacher", pool(1, *members), pool(2, (0, 0, 1.0)), margin_std=1.0)
    found = metrics_of(model, traces[:1], known, pools).iloc[0]
    reading = read(model, all_places(traces[:1], *known))
    anchor = reading.anchor("unembed", 0)[0].detach()
    sharp, align = [], []
    for slot in range(len(traces[0].early)):
        row = sum(w * reading.early_rows(layer)[0][0, h, slot] for layer, h, w in members)
        kept = row[1 : traces[0].early[slot] + 1]
        sharp.append(np.log10(1 + max(scipy.stats.kurtosis((kept / kept.sum()).numpy()), 0)))
        write = sum(w * reading.early_writes(layer)[0, h, slot] for layer, h, w in members).detach()
        align.append(float(write @ anchor / write.norm() / anchor.norm()))
    assert found["sharp"] == pytest.approx(np.mean(sharp), rel=1e-3)
    assert found["align"] == pytest.approx(np.mean(align), rel=1e-3)


def test_change_by_epsilon_is_that_of_the_pooled_row_over_the_keys_each_query_sees(
    model, traces, known
):
    members = (0, 1, 0.3), (2, 0, 0.7)
    pools = Pools("teacher", pool(1, *members), pool(2, (0, 0, 1.0)), margin_std=1.0)
    found = metrics_of(model, traces[:1], known, pools).iloc[0]
    reading = read(model, all_places(traces[:1], *known))
    changes = []
    for slot, query in enumerate(traces[0].early):
        row = sum(w * reading.early_rows(layer)[0][0, h, slot] for layer, h, w in members)
        seen = row[: query + 1].double().numpy()
        moment = scipy.stats.moment(seen, 4)
        exact, printed = (moment / (seen.var() + eps) ** 2 for eps in (0.0, 1e-6))
        changes.append(abs(printed - exact) / exact)
    assert found["eps_change"] == pytest.approx(np.mean(changes), rel=1e-3)
    assert found["eps_change_without_sinks"] != found["eps_change"]


WINDOW = 12
"""Of layers 0 and 2; layer 1 sees all keys."""


@pytest.fixture(scope="module", params=["qwen3", "gemma3_text"])
def windowed(request, architecture, tokenizer):
    """A model of a family with sliding windows, shorter than the prompts."""
    windows = {"family": request.param, "sliding_window": WINDOW, "full_attention_every": 2}
    model = build_model(
        architecture | windows,
        vocab_size=len(tokenizer),
        pad_id=tokenizer.pad_token_id,
        bos_id=tokenizer.bos_token_id,
        eos_id=tokenizer.eos_token_id,
        max_positions=256,
        seed=0,
    ).eval()
    for name, parameter in model.named_parameters():
        if "q_norm" in name:  # sharp rows
            parameter.data += 4.0
    return model


@pytest.mark.parametrize("members", [((1, 0, 0.4), (2, 3, 0.6)), ((0, 1, 0.3), (2, 0, 0.7))])
def test_pooled_row_has_the_keys_that_some_head_of_the_pool_sees(windowed, traces, known, members):
    """The first pool holds a head that sees all keys, the second only heads with windows."""
    pools = Pools("teacher", pool(1, *members), pool(2, (0, 0, 1.0)), margin_std=1.0)
    found = metrics_of(windowed, traces[:2], known, pools)
    eager = copy.deepcopy(windowed)
    eager.set_attn_implementation("eager")
    for trace in traces[:2]:
        with torch.no_grad():
            out = eager(torch.tensor([trace.tokens]), output_attentions=True)
        sharp, changes = [], []
        for query in trace.early:
            first = 0 if members[0][0] == 1 else query - WINDOW + 1
            assert first >= 0
            row = sum(w * out.attentions[layer][0, h, query] for layer, h, w in members)
            assert row[:first].sum() == 0
            seen = row[first : query + 1].double().numpy()
            kept = seen[1:] if first == 0 else seen  # the first token is a sink
            sharp.append(np.log10(1 + max(scipy.stats.kurtosis(kept / kept.sum()), 0)))
            moment = scipy.stats.moment(seen, 4)
            exact, printed = (moment / (seen.var() + eps) ** 2 for eps in (0.0, 1e-6))
            changes.append(abs(printed - exact) / exact)
        row = found.loc[trace.example]
        assert row["sharp"] == pytest.approx(np.mean(sharp), rel=1e-3)
        # measured against rows times n, whose own eps counts 1 / n^2 of it: 0.7 % at 12 keys
        assert row["eps_change"] == pytest.approx(np.mean(changes), rel=1e-2)


def test_empty_pool_has_no_metrics(model, traces, known):
    nobody = Pool(1, torch.tensor([]).long(), torch.tensor([]).long(), torch.tensor([]))
    pools = Pools("teacher", nobody, pool(2, (0, 0, 1.0)), margin_std=1.0)
    frame = read_mechanisms(model, traces, *known, pools, **KEYS)
    assert set(frame["metric"]) == {"loop", "help", "help_scaled"}


def test_found_pools_hold_heads_with_positive_factors(model, traces, known):
    pools = find_pools(model, traces, *known, name="student", size=3, temperature=1.0, **KEYS)
    assert pools.model == "student"
    assert pools.margin_std > 0
    found = metrics_of(model, traces, known, pools)
    assert len(pools.phase1) > 0
    assert found["sharp_of_heads"].mean() > 0
