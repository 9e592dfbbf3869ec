"""What is measured: each benchmark's cases, in the order in which they matter.

Sizes and turns are chosen so that everything is measured within about twenty minutes on one core.
Ways that make a matrix of all pairs of tokens are left out where that would take minutes a turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.made_up import MODELS
from benchmarks.measurement import Case, Comparison, Way

MODEL = "small"
CONDITIONS = 16
LONG = 2048
"""Tokens from which the targets count."""
TURNS = {256: 5, 512: 7, 1024: 7, 2048: 7, 4096: 3, 8192: 1}
"""Timed turns of the quick ways by prompt length."""
SLOW_TURNS = {512: 5, 1024: 3, 2048: 1, 4096: 1}
"""Of the ways that make whole matrices; beyond, they are not run."""
EAGER_ONCE = 4096
"""There eager attention alone takes its turns, if memory allows."""
HEADS = (6, 12, 24, 48)
EXAMPLES = (1, 2, 4, 8)
SETS = (4, 16, 64, 256)
RIVALS = ("TransformerLens", "TransformerLens, sliced", "nnsight")

_UNMEASURED = "not run: time; the shorter lengths tell its cost"
SCORING = "benchmarks.ways.row_scoring"
LENS = "benchmarks.ways.with_transformer_lens"
NNSIGHT = "benchmarks.ways.with_nnsight"
PATCHING = "benchmarks.ways.patching"
ABLATION = "benchmarks.ways.ablation"


def all_cases() -> list[Case]:
    """Those of the page."""
    targets = [scoring(512), training(512), sweep(512), generation(512), scoring(1024)]
    targets += [sweep(1024), training(1024), scoring(2048), training(2048), sweep(2048)]
    curves = [scoring_heads(count) for count in HEADS]
    curves += [scoring_examples(count) for count in EXAMPLES]
    curves += [sweep_conditions(count) for count in SETS]
    curves += [ablation(512)]
    return [*targets, *curves, scoring(4096), scoring(8192)]


def quick_cases() -> list[Case]:
    """Each way once at a tiny size."""
    return [
        scoring(64, "tiny", turns=2),
        training(64, "tiny", turns=2),
        sweep(64, "tiny", turns=2),
        ablation(64, "tiny", turns=2),
        generation(64, "tiny", turns=2, conditions=4, steps=4),
    ]


def scoring(tokens: int, model: str = MODEL, turns: int | None = None) -> Case:
    """All heads of one trace, by the length of prompt and trace."""
    slow = SLOW_TURNS.get(tokens, 0) if turns is None else turns
    why = _why_not(tokens, model)
    ways = [
        Way("plain", SCORING),
        Way("rows", SCORING),
        Way("every variant", SCORING, left_out=_UNMEASURED if tokens > 4096 else ""),
        Way(
            "eager",
            SCORING,
            needs_mib=_matrices_mib(tokens, model),
            left_out=why if tokens > EAGER_ONCE else "",
            turns=slow,
        ),
        *(
            Way(
                name,
                NNSIGHT if name == "nnsight" else LENS,
                rival=True,
                needs_mib=2 * _matrices_mib(tokens, model),
                left_out=why,
                turns=slow,
            )
            for name in RIVALS
        ),
    ]
    long = tokens >= LONG
    comparisons = [
        _cost("rows", "plain", *((1.03, 1.05) if long else ())),
        _cost("every variant", "plain", *((1.03, 1.05) if long else ())),
        *(_gain("rows", other, *((5.0, 30.0) if long else ())) for other in ("eager", *RIVALS)),
    ]
    setting = {"model": model, "tokens": tokens}
    count = TURNS[tokens] if turns is None else turns
    return Case("row scoring", "tokens", tokens, setting, ways, comparisons, count)


def scoring_heads(heads: int, tokens: int = 1024) -> Case:
    """By the number of heads a layer, all equally wide, the residual stream as it is."""
    setting = {"model": MODEL, "tokens": tokens, "shape": {"heads": heads, "head_dim": 32}}
    return _scoring_curve("heads", heads, setting)


def scoring_examples(examples: int, tokens: int = 256) -> Case:
    """By the number of traces in a batch."""
    setting = {"model": MODEL, "tokens": tokens, "examples": examples}
    return _scoring_curve("examples", examples, setting)


def sweep(tokens: int, model: str = MODEL, turns: int | None = None) -> Case:
    """Patching by prompt length; a pass each is 2 + 2 CONDITIONS passes."""
    few = {512: 1, 1024: 1, 2048: 1}.get(tokens, 0) if turns is None else turns
    setting = {"model": model, "tokens": tokens, "conditions": CONDITIONS}
    why = "not run: minutes a turn" if tokens > 512 else ""
    ways = [
        Way("sweep", PATCHING),
        Way("a pass each", PATCHING, turns=few),
        Way(
            "TransformerLens, patching",
            LENS,
            rival=True,
            left_out=why,
            turns=0 if turns is None else turns,
        ),
    ]
    least = 10.0 if tokens >= LONG else None
    comparisons = [
        _gain("sweep", "a pass each", least),
        _gain("sweep", "TransformerLens, patching", least),
    ]
    return Case("patching sweep", "tokens", tokens, setting, ways, comparisons, turns or 3)


def sweep_conditions(conditions: int, tokens: int = 512) -> Case:
    """By the number of conditions."""
    setting = {"model": MODEL, "tokens": tokens, "conditions": conditions}
    ways = [Way("sweep", PATCHING)]
    return Case("patching sweep", "conditions", conditions, setting, ways, [], 3)


def ablation(tokens: int, model: str = MODEL, turns: int | None = None) -> Case:
    """Every head alone, by prompt length; a pass a head is as many passes as there are heads."""
    setting = {"model": model, "tokens": tokens}
    ways = [
        Way("branches", ABLATION),
        Way("attribution", ABLATION),
        Way("a pass a head", ABLATION, turns=turns or 0),
    ]
    comparisons = [
        _gain("branches", "a pass a head", None),
        _gain("attribution", "a pass a head", None),
    ]
    return Case("ablation", "tokens", tokens, setting, ways, comparisons, turns or 3)


def generation(
    tokens: int,
    model: str = MODEL,
    turns: int | None = None,
    conditions: int = CONDITIONS,
    steps: int = 32,
) -> Case:
    """Writing on under patching: conditions in one batch, or one by one."""
    setting = {"model": model, "tokens": tokens, "conditions": conditions, "steps": steps}
    ways = [Way(name, "benchmarks.ways.generation") for name in ("batched", "one by one")]
    comparisons = [_gain("batched", "one by one", 5.0)]
    return Case("generation", "tokens", tokens, setting, ways, comparisons, turns or 3)


def training(tokens: int, model: str = MODEL, turns: int | None = None) -> Case:
    """A step of mechanistic distillation against one of plain distillation."""
    setting = {"model": model, "tokens": tokens, "examples": 1}
    ways = [Way(name, "benchmarks.ways.training_step") for name in ("vanilla", "mech")]
    count = {512: 7, 1024: 5, 2048: 3}[tokens] if turns is None else turns
    comparisons = [_cost("mech", "vanilla", 1.03, 1.05)]
    return Case("training step", "tokens", tokens, setting, ways, comparisons, count)


def _scoring_curve(axis: str, value: int, setting: dict[str, object]) -> Case:
    ways = [Way(name, SCORING) for name in ("plain", "rows")]
    return Case("row scoring", axis, value, setting, ways, [_cost("rows", "plain")], 3)


def _cost(way: str, against: str, time: float | None = None, memory: float | None = None):
    return Comparison(way, against, faster=False, time_target=time, memory_target=memory)


def _gain(way: str, against: str, time: float | None = None, memory: float | None = None):
    return Comparison(way, against, faster=True, time_target=time, memory_target=memory)


def _matrices_mib(tokens: int, model: str) -> float:
    """Patterns of every layer are kept; softmax holds about three of one layer more."""
    layers, heads = MODELS[model]["layers"], MODELS[model]["heads"]
    return (layers + 3) * heads * tokens**2 * 4 / 2**20


def _why_not(tokens: int, model: str) -> str:
    if tokens <= max(SLOW_TURNS):
        return ""
    return f"not run: minutes a turn, {_matrices_mib(tokens, model) / 1024:.0f} GiB of matrices"


def chosen(cases: Sequence[Case], names: Sequence[str]) -> list[Case]:
    """Those of the named benchmarks, all without a name."""
    return [case for case in cases if not names or case.benchmark in names]
