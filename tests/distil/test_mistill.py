"""MISTILL's loss and its gradients against eager attention and a loop over events (V09)."""

from __future__ import annotations

import copy
import math
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor

from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.student_tokenizer import train_byte_level_bpe
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.batch import collate, collate_signals, collate_tokens
from mechdistill.distil.caching import cache_targets
from mechdistill.distil.event_caching import SharedEvent, cache_events, shared_events
from mechdistill.distil.event_pools import causal_weights, pooled_weights
from mechdistill.distil.event_targets import (
    EventTargets,
    read_event_targets,
    write_event_targets,
)
from mechdistill.distil.forward import run
from mechdistill.distil.method import Material, StepInputs, Student
from mechdistill.distil.methods import load_method
from mechdistill.distil.retokenised import retokenise_all
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.errors import InputError
from mechdistill.heads.pools import Pools
from mechdistill.traces.decision_events import FAMILIES, decision_events
from mechdistill.traces.store import read_traces
from tests.distil.conftest import (
    METHOD_SETTINGS,
    NEEDS,
    PAD,
    SPECIAL,
    Study,
    head_effects,
    pools_of,
)
from tests.distil.test_mechanistic_losses import CACHING, random_anchors

REGION, WITHIN = FAMILIES.index(("region", "reasoning")), FAMILIES.index(("within", "reasoning"))
DEPARTURE = FAMILIES.index(("departure", "answer"))
PLACES = {"pad_id": PAD, "special_ids": SPECIAL}
WEIGHT = {"region": 0.3, "within": 0.2, "departure": 0.1}


def events_of(sequences: list[TrainingSequence]) -> dict[str, list[SharedEvent]]:
    """Two region events, one within, one departure; a region alone; nothing."""
    first, second, _ = sequences
    return {
        first.example: [
            SharedEvent(14, 14, REGION),
            SharedEvent(17, 17, WITHIN),
            SharedEvent(20, 20, REGION),
            SharedEvent(27, 27, DEPARTURE),
        ],
        second.example: [SharedEvent(13, 13, REGION)],
    }


@pytest.fixture
def weights() -> Tensor:
    """Of the teacher of 3 layers."""
    weights = torch.zeros(len(FAMILIES), 3, 4)
    weights[REGION, 0, 1], weights[REGION, 2, 2] = 0.75, 0.25
    weights[WITHIN, 1, 0] = 1.0
    weights[DEPARTURE, 2, 3] = 1.0
    return weights


def attention(model: Any, tokens: Any) -> tuple[Tensor, Any]:
    """Eager attention weights of one sequence [L, H, T, T], and the copy they have gradients of."""
    other = copy.deepcopy(model)
    other.set_attn_implementation("eager")
    found = other(torch.tensor([list(tokens)]), output_attentions=True).attentions
    return torch.stack([layer[0] for layer in found]), other


def slow_row(rows: Tensor, weights: Tensor, query: int, tokens: Any) -> Tensor:
    """abar_q without sinks, head by head."""
    row = sum(
        weights[layer, head] * rows[layer, head, query]
        for layer, head in weights.nonzero().tolist()
    )
    kept = torch.tensor([k > 0 and token not in SPECIAL for k, token in enumerate(tokens)])
    row = row * kept
    return row / row.sum()


def slow_terms(
    teacher: Any, student: Any, sequences: Any, events: Any, weights: Tensor, own: Tensor
) -> tuple[dict[str, Tensor], list[Any]]:
    """Event by event; the copies of the student that carry the gradients."""
    values: dict[str, list[Tensor]] = {kind: [] for kind in WEIGHT}
    copies = []
    for sequence in sequences:
        with torch.no_grad():
            theirs, _ = attention(teacher, sequence.tokens)
        mine, other = attention(student, sequence.tokens)
        copies.append(other)
        found: dict[str, list[Tensor]] = {kind: [] for kind in WEIGHT}
        for event in events.get(sequence.example, []):
            p = slow_row(theirs, weights[event.family], event.query, sequence.tokens)
            q = slow_row(mine, own[event.family], event.query, sequence.tokens)
            terms = [
                a * (math.log(max(float(a), 1e-8)) - torch.log(b.clamp(min=1e-8)))
                for a, b in zip(p, q)
                if a > 0
            ]
            found[FAMILIES[event.family][0]].append(torch.stack(terms).sum())
        for kind, of_kind in found.items():
            if of_kind:
                values[kind].append(torch.stack(of_kind).mean())
    return {f"event_{kind}": torch.stack(v).mean() for kind, v in values.items() if v}, copies


def started(
    student: Any, pools: Pools, sequences: Any, events: EventTargets, path: Any, **settings: float
) -> Any:
    write_event_targets(path, events)
    method = load_method("mistill")(METHOD_SETTINGS | settings)
    method.read(Material(None, student, {"event_targets": path}))
    anchors = random_anchors(sequences, student.config.hidden_size, 6)
    method.start(Student(student, pools, anchors, {1: 3, 2: 2}, 8), sequences)
    method.restore({"at_start": {f"event_{kind}": 1.0 for kind in WEIGHT}})
    return method


def losses(method: Any, teacher: Any, student: Any, sequences: Any, pools: Pools) -> Any:
    batch = collate(sequences, PAD, SPECIAL)
    anchors = random_anchors(sequences, teacher.config.hidden_size, 5)
    cached = cache_targets(teacher, sequences, anchors, pools, **CACHING, batch_size=2)
    tokens = collate_tokens(sequences, cached.examples)
    tap = method.tap(batch)
    step = StepInputs(
        batch,
        tokens,
        collate_signals(sequences, cached.examples, batch.slots),
        run(student, batch, tap),
        {name: 1.0 for name, size in method.sizes(batch, tokens).items() if size},
    )
    return method.loss(step)


def test_terms_and_gradients_equal_a_loop_over_events(
    teacher, student, sequences, teacher_pools, student_pools, weights, tmp_path
) -> None:
    events = events_of(sequences)
    targets = cache_events(teacher, sequences, events, weights, **PLACES, batch_size=2)
    method = started(student, student_pools, sequences, targets, tmp_path / "e.safetensors")
    found = losses(method, teacher, student, sequences, teacher_pools)
    own = pooled_weights(student_pools, layers=2, heads=4)
    expected, copies = slow_terms(teacher, student, sequences, events, weights, own)
    assert {name for name in found if name.startswith("event")} == set(expected)
    for name, value in expected.items():
        assert found[name].weight == WEIGHT[name.removeprefix("event_")]
        torch.testing.assert_close(found[name].value, value, rtol=2e-4, atol=1e-6)
        assert value > 1e-4
    total = sum(found[name].value for name in expected)
    names = [name for name, _ in student.named_parameters()]
    fast = torch.autograd.grad(total, list(student.parameters()), allow_unused=True)
    sum(expected.values()).backward()  # type: ignore[union-attr]
    scale = max(g.abs().max() for g in fast if g is not None)
    assert scale > 0
    for name, gradient in zip(names, fast):
        slow = [c.get_parameter(name).grad for c in copies]
        whole = sum(g for g in slow if g is not None)
        difference = whole - (torch.zeros(()) if gradient is None else gradient)
        assert torch.as_tensor(difference).abs().max() < 1e-3 * scale, name


def test_only_events_are_looked_at(
    teacher, student, sequences, teacher_pools, student_pools, weights, tmp_path
) -> None:
    events = events_of(sequences)
    targets = cache_events(teacher, sequences, events, weights, **PLACES, batch_size=3)
    method = started(student, student_pools, sequences, targets, tmp_path / "e.safetensors")
    batch = collate(sequences, PAD, SPECIAL)
    wanted = [[at.query for at in events.get(s.example, [])] for s in sequences]
    assert torch.equal(method.tap(batch).queries, batch.padded.positions(wanted))
    assert method.positions(batch) == {
        "event_region": 2.0,
        "event_within": 1.0,
        "event_departure": 1.0,
    }


def test_a_weight_of_0_and_families_without_heads_leave_their_events_out(
    teacher, student, sequences, teacher_pools, weights, tmp_path
) -> None:
    weights[WITHIN] = 0.0
    events = events_of(sequences)
    targets = cache_events(teacher, sequences, events, weights, **PLACES, batch_size=2)
    assert targets.sizes[WITHIN] == 0 and targets.sizes[REGION] == 2
    pools = pools_of({(0, 0): 1.0}, {})
    path = tmp_path / "e.safetensors"
    method = started(student, pools, sequences, targets, path)
    found = losses(method, teacher, student, sequences, teacher_pools)
    assert [name for name in found if name.startswith("event")] == ["event_region"]
    assert "within events of the reasoning: no head of the teacher exceeds its nulls" in (
        method.left_out()
    )
    assert "departure events of the answer: the student's pool is empty" in method.left_out()
    silent = started(student, pools, sequences, targets, path, **{"distil.mistill.region": 0.0})
    assert silent.tap(collate(sequences, PAD, SPECIAL)) is None


def test_causal_heads_are_those_beyond_their_nulls_weighted_by_excess() -> None:
    weights = causal_weights(head_effects(), layers=2, heads=4, size=2)
    expected = torch.zeros(len(FAMILIES), 2, 4)
    expected[:, 0, 2] = 1.0
    expected[[REGION, WITHIN]] = 0.0
    expected[REGION, 0, 1], expected[REGION, 1, 2] = 0.75, 0.25
    expected[WITHIN, 1, 0] = 1.0
    torch.testing.assert_close(weights, expected)
    none = head_effects().assign(above_null=False)
    assert not causal_weights(none, layers=2, heads=4, size=2).any()
    assert not causal_weights(pd.DataFrame(columns=none.columns), layers=2, heads=4, size=2).any()


def test_the_script_s_events_are_the_first_of_each_pick_on_the_training_traces(
    study: Study,
) -> None:
    found = read_event_targets(study.folder / NEEDS["event_targets"])
    space = read_label_space(study.folder / "label_space.json")
    tokenizer = load_tokenizer(study.folder / "tokenizer.json")
    examples = {e.example: e for e in read_examples(study.folder / "examples.parquet")}
    for trace in read_traces(study.folder / "traces.parquet", "training"):
        events = decision_events(trace, examples[trace.example], tokenizer, space)
        expected = [
            (event.query, FAMILIES.index((event.kind, event.segment)))
            for event in events
            if event.repeat == 0
        ]
        own = found.examples[trace.example]
        assert list(zip(own.queries.tolist(), own.families.tolist())) == expected
        assert own.rows.shape == (len(expected), len(trace.tokens))
        sums = own.rows.sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums))
        for row, query in zip(own.rows, own.queries.tolist()):
            assert not row[query + 1 :].any() and not row[0]


def test_the_same_decisions_are_found_in_other_tokens(study: Study) -> None:
    space = read_label_space(study.folder / "label_space.json")
    tokenizer = load_tokenizer(study.folder / "tokenizer.json")
    examples = read_examples(study.folder / "examples.parquet", "training")
    known = {example.example: example for example in examples}
    traces = read_traces(study.folder / "traces.parquet", "training")
    other_tokenizer = train_byte_level_bpe([e.prompt + e.reference for e in examples], 600)
    pairs = retokenise_all(traces, examples, tokenizer, other_tokenizer, space)
    shared = 0
    for pair in pairs:
        own = decision_events(pair.teacher, known[pair.teacher.example], tokenizer, space)
        other = decision_events(pair.student, known[pair.teacher.example], other_tokenizer, space)
        found = pair.same_decisions(own, other)
        assert len({id(second) for _, second in found}) == len(found)
        for first, second in found:
            assert (first.kind, first.segment, first.code) == (
                second.kind,
                second.segment,
                second.code,
            )
            start, end = pair.teacher_ends.spelled(first.query + 1)
            begin, stop = pair.student_ends.spelled(second.query + 1)
            assert max(start, begin) < min(end, stop)
        # a concept is one token of the teacher's: each decision of it is one of the student's
        regions = [e for e in own if e.kind == "region" and e.form == "region"]
        assert {id(e) for e in regions} <= {id(first) for first, _ in found}
        assert len(shared_events(found)) == sum(first.repeat == 0 for first, _ in found)
        shared += len(found)
    assert shared > 3 * len(pairs)


def test_a_file_that_is_no_cache_is_named(study: Study) -> None:
    path = study.folder / "targets.safetensors"
    with pytest.raises(InputError, match=r"targets\.safetensors is not a cache"):
        read_event_targets(path)
