"""What the machine could do at best, and how near each piece of the work comes to it.

    python -m benchmarks.limits

One thread, fp32. A piece cannot take less than its floating-point operations at the best rate of a
matrix product, nor less than its bytes at the rate of a copy; the larger of the two is its limit.
Operations and bytes are counted from shapes: every operand is read once, every result written once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from benchmarks.factors import early_factors, refine_factors
from benchmarks.made_up import MODELS, made_up_model, made_up_trace
from benchmarks.measurement import code_digest, results
from benchmarks.ways.row_scoring import prepared
from mechdistill.models.attention_rows import attention_rows
from mechdistill.models.tap import head_writes

TURNS = 7
SQUARE = 1024
COPIED = 2**26
"""Floats, 256 MiB: no cache holds them."""


@dataclass(frozen=True)
class Piece:
    """One layer's share of a piece of the work.

    Args:
        part_of: the pass itself, or the scores that are read beside it.
        operations: floating-point.
        bytes: read and written.
        seconds: median of some turns.
    """

    name: str
    part_of: str
    operations: float
    bytes: float
    seconds: float


def measure_limits(model: str = "small", tokens: int = 2048) -> dict[str, Any]:
    """Rates, pieces and the profile; kept under the digest of the measured code."""
    path = results() / "limits.json"
    if path.exists():
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if kept["code"] == code_digest() and kept["tokens"] == tokens:
            return kept
    torch.set_num_threads(1)
    found = {
        "code": code_digest(),
        "model": model,
        "tokens": tokens,
        "layers": MODELS[model]["layers"],
        "operations_per_second": product_rate(),
        "bytes_per_second": copy_rate(),
        "pieces": [asdict(piece) for piece in pieces(model, tokens)],
        "profile": {way: shares(way, model, tokens) for way in ("plain", "rows")},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def product_rate(size: int = SQUARE) -> float:
    """Operations a second of a square matrix product, the best of some turns."""
    one, other = torch.randn(size, size), torch.randn(size, size)
    return 2 * size**3 / min(_turns(lambda: one @ other))


def copy_rate(count: int = COPIED) -> float:
    """Bytes read and written a second, the best of some turns."""
    source, target = torch.zeros(count), torch.zeros(count)
    return 2 * 4 * count / min(_turns(lambda: target.copy_(source)))


@torch.no_grad()
def pieces(name: str, tokens: int) -> Iterator[Piece]:
    """Each piece of one layer by itself, on random tensors of the model's shapes."""
    model = made_up_model(name, "tapped")
    trace = made_up_trace(tokens)
    block, config = model.model.layers[0], model.config
    d, inner, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
    width, early, refine = config.head_dim, len(trace.early), len(trace.refine)
    queries = early + refine
    x = torch.randn(1, tokens, d)
    attention, mlp = block.self_attn, block.mlp

    def linear() -> None:
        for projection in (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj):
            projection(x)
        mlp.down_proj(mlp.gate_proj(x) * mlp.up_proj(x))

    weights = 4 * d * heads * width + 3 * d * inner
    passed = tokens * (4 * d + 4 * heads * width + 3 * d + 6 * inner)
    yield _piece("projections and MLP", "pass", linear, 2 * tokens * weights, weights + passed)

    q, k, v = (torch.randn(1, heads, tokens, width) for _ in range(3))

    def fused() -> None:
        functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    seen = tokens * (tokens + 1) / 2
    yield _piece("fused attention", "pass", fused, 4 * heads * seen * width, 4 * q.numel())

    at = torch.tensor([*trace.early, *trace.refine])
    visible = (torch.arange(tokens) <= at[:, None])[None]
    rows = attention_rows(q[:, :, at], k, visible, width**-0.5)
    reading = 2 * heads * queries * tokens * width
    yield _piece(
        "rows at 30 positions",
        "scores",
        lambda: attention_rows(q[:, :, at], k, visible, width**-0.5),
        reading,
        k.numel() + 6 * rows.numel(),
    )

    mixed = torch.randn(1, heads, queries, width)
    written = heads * queries
    yield _piece(
        "heads' writes",
        "scores",
        lambda: head_writes(model, 0, mixed),
        2 * written * heads * width * d,
        heads * width * d + written * (2 * heads * width + d),
    )

    writes = head_writes(model, 0, mixed)

    def scores() -> None:
        early_factors(rows[:, :, :early], writes[:, :, :early], x[:, 0], trace)
        query, key = q[:, :, list(trace.refine)], k[:, :, list(trace.mentions)]
        refine_factors(query, key, writes[:, :, early:], x[:, :refine], trace)

    counted = rows.numel() / queries * early
    yield _piece(
        "factors of both scores",
        "scores",
        scores,
        10 * counted + 6 * writes.numel(),
        6 * counted + 3 * writes.numel(),
    )


def shares(way: str, model: str, tokens: int) -> dict[str, float]:
    """Share of the CPU time of each kind of operation, the largest ten."""
    work = prepared(way, {"model": model, "tokens": tokens})
    work()
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        work()
    spent = {event.key: event.self_cpu_time_total for event in profiled.key_averages()}
    total = sum(spent.values())
    largest = sorted(spent, key=lambda key: -spent[key])[:10]
    return {key: spent[key] / total for key in largest}


def _piece(
    name: str, part_of: str, work: Callable[[], object], operations: float, floats: float
) -> Piece:
    turns = sorted(_turns(work))
    return Piece(name, part_of, operations, 4 * floats, turns[len(turns) // 2])


def _turns(work: Callable[[], object | Tensor]) -> list[float]:
    work()
    seconds = []
    for _ in range(TURNS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return seconds


if __name__ == "__main__":
    print(json.dumps(measure_limits(), indent=1))
