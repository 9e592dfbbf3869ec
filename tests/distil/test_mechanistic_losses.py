"""The six terms and their gradients against Eqs. 5 and 6 written as slow loops."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from mechdistill.distil.batch import collate, collate_signals, collate_tokens
from mechdistill.distil.caching import cache_targets
from mechdistill.distil.forward import run
from mechdistill.distil.method import StepInputs, Student
from mechdistill.distil.methods import load_method
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.distil.targets import Targets
from mechdistill.heads.pools import Pools
from tests.distil.conftest import EOS, PAD, SPECIAL, pools_of, sequence, tiny_model
from tests.distil.slow_losses import frozen_copy, sharpness, slow_terms

SETTINGS = {"distil.lambda_kl": 0.5, "distil.lambda_p1": 0.3, "distil.lambda_p2": 0.2}
KEYS = 8
CACHING = {"top_k": 5, "minimum_keys": KEYS, "pad_id": PAD, "special_ids": SPECIAL}
TERMS = (
    "p1_attention", "p1_write", "p1_interaction", "p2_loop", "p2_write", "p2_interaction"
)  # fmt: skip


def random_anchors(sequences: list[TrainingSequence], width: int, seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {s.example: torch.randn(width, generator=generator) for s in sequences}


@pytest.fixture
def anchors(
    sequences: list[TrainingSequence], teacher: Any, student: Any
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    return (
        random_anchors(sequences, teacher.config.hidden_size, 5),
        random_anchors(sequences, student.config.hidden_size, 6),
    )


@pytest.fixture
def targets(
    teacher: Any, sequences: list[TrainingSequence], anchors: Any, teacher_pools: Pools
) -> Targets:
    return cache_targets(teacher, sequences, anchors[0], teacher_pools, **CACHING, batch_size=2)


def started(name: str, model: Any, pools: Pools, anchors: dict[str, Tensor], sequences: Any) -> Any:
    method = load_method(name)(SETTINGS)
    method.start(Student(model, pools, anchors, {1: 3, 2: 2}, KEYS), sequences)
    return method


def step_inputs(
    method: Any, model: Any, sequences: list[TrainingSequence], targets: Targets
) -> StepInputs:
    batch = collate(sequences, PAD, SPECIAL)
    tap = method.tap(batch)
    tokens = collate_tokens(sequences, targets.examples)
    return StepInputs(
        batch,
        tokens,
        collate_signals(sequences, targets.examples, batch.slots) if tap else None,
        run(model, batch, tap),
        {name: 1.0 for name, size in method.sizes(batch, tokens).items() if size},
    )


@dataclass(frozen=True)
class InOnePart:
    """A batch that is processed whole."""

    inputs: StepInputs

    def mean(self, terms: Any) -> dict[str, float]:
        values = terms(self.inputs).items()
        return {name: value.item() for name, value in values if name in self.inputs.shares}


def raw_terms(method: Any, model: Any, sequences: Any, targets: Targets) -> dict[str, Tensor]:
    step = step_inputs(method, model, sequences, targets)
    method.restore({"at_start": dict.fromkeys(TERMS, 1.0)})
    return {name: term.value for name, term in method.loss(step).items() if name in TERMS}


def test_terms_equal_the_formulas(
    teacher, student, sequences, targets, anchors, teacher_pools, student_pools
) -> None:
    method = started("mech", student, student_pools, anchors[1], sequences)
    # a step later: the student has moved on, its read-out of step 0 stays
    moved = copy.deepcopy(student)
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    frozen = frozen_copy(student)
    student.load_state_dict(moved.state_dict())
    found = raw_terms(method, student, sequences, targets)
    expected = slow_terms(
        teacher, student, frozen, sequences, (teacher_pools, student_pools), anchors
    )
    assert set(found) == set(expected) == set(TERMS)
    for name in TERMS:
        torch.testing.assert_close(found[name], expected[name], rtol=2e-4, atol=1e-6)
        assert expected[name] > 1e-6


@pytest.mark.parametrize("name", TERMS)
def test_gradients_equal_those_of_the_formulas(
    name, teacher, student, sequences, targets, anchors, teacher_pools, student_pools
) -> None:
    method = started("mech", student, student_pools, anchors[1], sequences)
    parameters = dict(student.named_parameters())
    fast = torch.autograd.grad(
        raw_terms(method, student, sequences, targets)[name],
        parameters.values(),
        allow_unused=True,
    )
    slow = torch.autograd.grad(
        slow_terms(
            teacher,
            student,
            frozen_copy(student),
            sequences,
            (teacher_pools, student_pools),
            anchors,
        )[name],
        parameters.values(),
        allow_unused=True,
    )
    scale = max(g.abs().max() for g in slow if g is not None)
    assert scale > 0
    for key, a, b in zip(parameters, fast, slow):
        a, b = (torch.zeros(()) if g is None else g for g in (a, b))
        assert (a - b).abs().max() < 1e-3 * scale, key


def test_no_gradient_reaches_the_read_out(
    student, sequences, targets, anchors, student_pools
) -> None:
    method = started("mech", student, student_pools, anchors[1], sequences)
    sum(raw_terms(method, student, sequences, targets).values()).backward()
    assert student.lm_head.weight.grad is None
    assert student.model.norm.weight.grad is None
    assert student.model.layers[0].self_attn.q_proj.weight.grad.abs().max() > 0


def test_a_student_equal_to_its_teacher_has_no_mechanistic_loss(
    teacher, sequences, targets, anchors, teacher_pools
) -> None:
    method = started("mech", teacher, teacher_pools, anchors[0], sequences)
    for name, value in raw_terms(method, teacher, sequences, targets).items():
        assert abs(value.item()) < 1e-6, name


def test_each_term_counts_its_lambda_at_step_0(
    student, sequences, targets, anchors, student_pools
) -> None:
    method = started("mech", student, student_pools, anchors[1], sequences)
    method.measure([InOnePart(step_inputs(method, student, sequences, targets))])
    for name, term in method.loss(step_inputs(method, student, sequences, targets)).items():
        if name in TERMS:
            expected = SETTINGS[f"distil.lambda_{name[:2]}"]
            assert term.value.item() * term.weight == pytest.approx(expected, rel=1e-5)


def test_a_batch_without_a_position_does_not_lower_the_unit_of_a_term(
    student, sequences, targets, anchors, student_pools
) -> None:
    """The second sequence has no refinement position: it says nothing of phase 2."""
    with_positions, mixed = (
        started("mech", student, student_pools, anchors[1], sequences) for _ in range(2)
    )
    steps = [step_inputs(mixed, student, part, targets) for part in (sequences[:1], sequences[1:2])]
    with_positions.measure([InOnePart(steps[0])])
    mixed.measure([InOnePart(step) for step in steps])
    for term in TERMS[3:]:
        assert mixed.state()["at_start"][term] == with_positions.state()["at_start"][term]
    assert not set(mixed.loss(steps[1])) & set(TERMS[3:])


def test_a_term_that_no_measured_batch_has_takes_its_first_value(
    student, sequences, targets, anchors, student_pools
) -> None:
    method = started("mech", student, student_pools, anchors[1], sequences)
    method.measure([InOnePart(step_inputs(method, student, sequences[1:2], targets))])
    assert method.knows(TERMS[:3])
    assert not method.knows(TERMS)
    known = method.state()["at_start"]
    step = step_inputs(method, student, sequences[:1], targets)
    method.measure([InOnePart(step)])
    first = method.loss(step)
    assert {name: method.state()["at_start"][name] for name in TERMS[:3]} == known
    for name in TERMS[3:]:
        assert first[name].value.item() * first[name].weight == pytest.approx(0.2, rel=1e-5)


def test_rows_with_fewer_keys_than_asked_have_no_sharpness_in_teacher_and_student(
    teacher, student, sequences, anchors, teacher_pools, student_pools
) -> None:
    """All rows have fewer than 30 keys: then PCS is 0 on both sides, and so is their difference."""
    caching = CACHING | {"minimum_keys": 30, "batch_size": 2}
    cached = cache_targets(teacher, sequences, anchors[0], teacher_pools, **caching)
    assert cached.minimum_keys == 30
    assert not any(example.coarse_interaction.any() for example in cached.examples.values())
    method = load_method("mech")(SETTINGS)
    about = Student(student, student_pools, anchors[1], {1: 3, 2: 2}, cached.minimum_keys)
    method.start(about, sequences)
    assert raw_terms(method, student, sequences, cached)["p1_interaction"] == 0


def test_special_tokens_are_no_keys_of_the_pooled_rows(teacher, anchors, teacher_pools) -> None:
    whole = sequence(0, 30, 6, 2)
    tokens = (*whole.tokens[:5], EOS, *whole.tokens[6:])
    marked = replace(whole, tokens=tokens)
    cached = cache_targets(
        teacher, [marked], {marked.example: anchors[0][marked.example]}, teacher_pools,
        **CACHING, batch_size=1,
    )  # fmt: skip
    rows = cached.examples[marked.example].rows
    assert not rows[:, [0, 5]].any()
    torch.testing.assert_close(rows.sum(-1), torch.ones(len(rows)))


@pytest.mark.parametrize(("name", "kept"), [("p1_only", TERMS[:3]), ("p2_only", TERMS[3:])])
def test_dropping_a_phase_leaves_the_other_as_it_was(
    name, kept, student, sequences, targets, anchors, student_pools
) -> None:
    both, one = (
        started(method, student, student_pools, anchors[1], sequences) for method in ("mech", name)
    )
    losses = []
    for method in (both, one):
        inputs = step_inputs(method, student, sequences, targets)
        method.measure([InOnePart(inputs)])
        losses.append(method.loss(inputs))
    assert set(losses[1]) == {"cot_nll", "cot_kl", *kept}
    for term in losses[1]:
        torch.testing.assert_close(losses[1][term].value, losses[0][term].value)
        assert losses[1][term].weight == pytest.approx(losses[0][term].weight)


@pytest.mark.parametrize("coarse", [{(1, 0): 0.4, (2, 3): 0.6}, {(0, 1): 0.3, (2, 0): 0.7}])
def test_pooled_rows_have_the_keys_that_some_head_of_the_pool_sees(coarse, sequences) -> None:
    """Layers 0 and 2 see the last 9 tokens, layer 1 all: as `heads.readout` reads the same pool."""
    windows = {"family": "qwen3", "sliding_window": 9, "full_attention_every": 2}
    model = tiny_model(1, hidden=32, layers=3, **windows)
    anchors = random_anchors(sequences, 32, 5)
    cached = cache_targets(
        model, sequences, anchors, pools_of(coarse, {(1, 0): 1.0}), **CACHING, batch_size=2
    )
    eager = copy.deepcopy(model)
    eager.set_attn_implementation("eager")
    for of in sequences:
        out = eager(torch.tensor([of.tokens]), output_attentions=True)
        found = cached.examples[of.example]
        for slot, q in enumerate(of.early):
            first = 1 if (1, 0) in coarse else q - 8
            row = sum(w * out.attentions[layer][0, h, q] for (layer, h), w in coarse.items())
            kept = row[first : q + 1] / row[first : q + 1].sum()
            assert first > 1 or row[0] > 0
            torch.testing.assert_close(found.rows[slot, first : q + 1], kept)
            assert not found.rows[slot, :first].any()
            expected = sharpness(kept) * found.alignment[slot]
            torch.testing.assert_close(found.coarse_interaction[slot], expected, rtol=1e-3, atol=0)


def test_padding_and_company_change_nothing(
    student, sequences, targets, anchors, student_pools
) -> None:
    method = started("mech", student, student_pools, anchors[1], sequences)
    together = raw_terms(method, student, sequences, targets)
    alone = [raw_terms(method, student, [sequence], targets) for sequence in sequences]
    early = sum(terms["p1_attention"] for terms in alone) / 3
    late = (alone[0]["p2_write"] + alone[2]["p2_write"]) / 2  # the second has no such position
    torch.testing.assert_close(together["p1_attention"], early, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(together["p2_write"], late, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dropped", TERMS)
def test_dropping_a_term_leaves_the_others_as_they_were(
    dropped, student, sequences, targets, anchors, student_pools
) -> None:
    losses = []
    for name in ("mech", f"mech_without_{dropped}"):
        method = started(name, student, student_pools, anchors[1], sequences)
        inputs = step_inputs(method, student, sequences, targets)
        method.measure([InOnePart(inputs)])
        losses.append(method.loss(inputs))
    whole, less = losses
    assert set(whole) - set(less) == {dropped}
    for term in less:
        torch.testing.assert_close(less[term].value, whole[term].value)
        assert less[term].weight == pytest.approx(whole[term].weight)


def test_margin_loss_is_that_of_the_pairs_logits_and_reads_no_head(
    student, sequences, targets, anchors, student_pools
) -> None:
    method = started("vanilla_margin", student, student_pools, anchors[1], sequences)
    assert method.tap(collate(sequences, PAD, SPECIAL)) is None
    inputs = step_inputs(method, student, sequences, targets)
    method.measure([InOnePart(inputs)])
    term = method.loss(inputs)["margin"]
    by_example = []
    for of in sequences:
        if not of.refine:
            continue
        logits = student(torch.tensor([of.tokens])).logits[0]
        losses = [
            -torch.log(torch.sigmoid(logits[at.query, at.target] - logits[at.query, at.foil]))
            for at in of.refine
        ]
        by_example.append(sum(losses) / len(losses))
    torch.testing.assert_close(term.value, sum(by_example) / 2, rtol=1e-4, atol=1e-5)
    assert term.value.item() * term.weight == pytest.approx(0.2, rel=1e-5)
    assert not set(method.loss(step_inputs(method, student, sequences[1:2], targets))) - {
        "cot_nll",
        "cot_kl",
    }


@pytest.mark.parametrize("whose", ["student", "teacher"])
def test_a_phase_with_an_empty_pool_is_left_out_and_named(
    whose, student, sequences, targets, anchors, student_pools
) -> None:
    pools = student_pools if whose == "teacher" else pools_of({(0, 0): 1.0}, {})
    method = load_method("mech")(SETTINGS)
    sizes = {1: 3, 2: 0 if whose == "teacher" else 2}
    method.start(Student(student, pools, anchors[1], sizes, KEYS), sequences)
    assert method.left_out() == (f"phase 2: the {whose}'s pool is empty",)
    assert set(raw_terms(method, student, sequences, targets)) == set(TERMS[:3])


def test_without_any_pool_the_plain_loss_remains(student, sequences, targets, anchors) -> None:
    method = load_method("mech")(SETTINGS)
    method.start(Student(student, pools_of({}, {}), anchors[1], {1: 3, 2: 2}, KEYS), sequences)
    inputs = step_inputs(method, student, sequences, targets)
    method.measure([InOnePart(inputs)])
    assert set(method.loss(inputs)) == {"cot_nll", "cot_kl"}
    assert len(method.left_out()) == 2


def test_gradients_stay_finite_with_unused_slots(
    student, sequences, targets, anchors, student_pools
) -> None:
    method = started("mech", student, student_pools, anchors[1], sequences)
    sum(raw_terms(method, student, sequences, targets).values()).backward()
    for name, parameter in student.named_parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name


def test_a_teacher_without_pools_caches_zeros(teacher, sequences, anchors) -> None:
    cached = cache_targets(
        teacher, sequences, anchors[0], pools_of({}, {}), **CACHING, batch_size=2
    )
    assert cached.pool_sizes == {1: 0, 2: 0}
    assert all(not example.rows.any() for example in cached.examples.values())


def test_batches_of_other_sizes_cache_the_same(
    teacher, sequences, targets, anchors, teacher_pools
) -> None:
    alone = cache_targets(teacher, sequences, anchors[0], teacher_pools, **CACHING, batch_size=1)
    for name, example in targets.examples.items():
        for field, value in vars(example).items():
            other = getattr(alone.examples[name], field)
            torch.testing.assert_close(value, other, rtol=1e-4, atol=1e-4)


def test_another_seed_is_another_model() -> None:
    assert not torch.equal(tiny_model(1).lm_head.weight, tiny_model(2).lm_head.weight)
