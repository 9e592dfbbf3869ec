"""How good traces are: answers against gold, and whether the reasoning names what it should."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.traces.generate import generate_traces
from mechdistill.traces.parse import OK, Trace


def micro_f1(examples: Sequence[Example], traces: Sequence[Trace]) -> float:
    """Micro-F1 of the answers: 2 tp / (2 tp + fp + fn) over all (note, code) pairs that count."""
    answers = [e.counted(t.answer) for e, t in zip(examples, traces, strict=True)]
    hits = sum(len(set(e.gold) & set(a)) for e, a in zip(examples, answers, strict=True))
    given = sum(len(set(answer)) for answer in answers)
    wanted = sum(len(set(example.gold)) for example in examples)
    return 2 * hits / (given + wanted) if given + wanted else 0.0


def trace_quality(
    examples: Sequence[Example], traces: Sequence[Trace], space: LabelSpace
) -> dict[str, float]:
    """Scores of traces on their examples.

    `micro_f1`; `exact_match`: answer equal to gold, as sets; `region_recall`: true regions named in
    the early words; `listed_pair`: clauses whose two codes are alternatives in the candidate list;
    `parsed`: traces with status ok. A share over nothing is 0.
    """
    pairs = list(zip(examples, traces, strict=True))
    clauses = [(example, codes) for example, trace in pairs for codes in clause_pairs(trace)]
    named = Counter(
        region in {m.code for m in trace.mentions if m.kind == "region" and m.segment == "early"}
        for example, trace in pairs
        for region in example.regions
    )
    return {
        "micro_f1": micro_f1(examples, traces),
        "exact_match": _share([set(e.counted(t.answer)) == set(e.gold) for e, t in pairs]),
        "region_recall": named[True] / max(1, named.total()),
        "listed_pair": _share([is_listed(example, codes, space) for example, codes in clauses]),
        "parsed": _share([trace.status == OK for trace in traces]),
    }


def validation_scores(
    model: Any,
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerFast,
    space: LabelSpace,
    max_new_tokens: int,
    batch_size: int,
) -> dict[str, float]:
    """`trace_quality` of a model's greedy traces."""
    traces = generate_traces(
        model,
        examples,
        tokenizer,
        space,
        early_tokens=max_new_tokens,  # no score depends on the window
        max_new_tokens=max_new_tokens,
        batch_size=batch_size,
        what="validation trace",
    )
    return trace_quality(examples, traces, space)


def clause_pairs(trace: Trace) -> list[frozenset[str]]:
    """The codes that each clause of the review names, in clause order."""
    codes: dict[int, set[str]] = {}
    for mention in trace.mentions:
        if mention.clause >= 0 and mention.kind == "label":
            codes.setdefault(mention.clause, set()).add(mention.code)
    return [frozenset(found) for found in codes.values()]


def is_listed(example: Example, codes: frozenset[str], space: LabelSpace) -> bool:
    """Whether the codes are two of one region, and in the example's candidate list."""
    if len(codes) != 2 or not codes <= set(example.candidates):
        return False
    return len({space.label(code).region for code in codes}) == 1


def _share(truths: Sequence[bool]) -> float:
    return sum(truths) / max(1, len(truths))
