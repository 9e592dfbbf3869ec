"""UniCoTT, MoRSD, SemCoT and CWT on a tiny study: sequences, losses, and what falls in training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mechdistill.artifacts import read_json, read_table
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.batch import collate, collate_tokens
from mechdistill.distil.cot_loss import negative_log_likelihood, token_log_probabilities
from mechdistill.distil.forward import run
from mechdistill.distil.method import Material, Method, StepInputs, Student, cot_terms
from mechdistill.distil.methods import declared_needs, load_method
from mechdistill.distil.reasoning_encoder import condensed, contrastive_loss, read_encoder
from mechdistill.distil.sequences import whole_trace
from mechdistill.distil.steps import reasoning_steps
from mechdistill.distil.targets import Targets, read_targets
from mechdistill.models.loading import load_model
from mechdistill.traces.implicit import implicit_tokens
from mechdistill.traces.parse import Trace
from mechdistill.traces.store import read_traces
from tests.distil.conftest import METHOD_SETTINGS, NEEDS, TRAINING, Study, run_script


class Ready:
    """A method with its student, sequences and targets, as the trainer has them."""

    def __init__(self, study: Study, name: str, **changed: Any) -> None:
        folder = study.folder
        cls = load_method(name)
        values = METHOD_SETTINGS | {f"distil.{key}": value for key, value in changed.items()}
        self.method: Method = cls({key: values[key] for key in cls.parameters})
        self.tokenizer = load_tokenizer(folder / "tokenizer.json")
        self.model = load_model(folder / "base.safetensors", folder / "base.json")
        files = {need: folder / NEEDS[need] for need in declared_needs(name)}
        self.method.read(Material(self.tokenizer, self.model, files))
        self.traces = read_traces(folder / "traces.parquet", "training")
        self.sequences = self.method.prepare(self.traces)
        self.targets: Targets = self.method.targets(read_targets(folder / "targets.safetensors"))
        student = Student(self.model, None, {}, {}, 8)  # type: ignore[arg-type]
        self.method.start(student, self.sequences)

    def step(self, count: int = 4) -> StepInputs:
        chosen = self.sequences[:count]
        batch = collate(chosen, self.tokenizer.pad_token_id, self.tokenizer.all_special_ids)
        tokens = collate_tokens(chosen, self.targets.examples)
        return StepInputs(batch, tokens, None, run(self.model, batch), {})

    def values(self) -> dict[str, float]:
        return {name: term.value.item() for name, term in self.method.loss(self.step()).items()}


def text_of(ready: Ready, trace: Trace, start: int, end: int) -> str:
    return str(ready.tokenizer.decode(list(trace.tokens[start:end])))


def test_steps_hold_every_token_of_the_reasoning_once(study: Study) -> None:
    ready = Ready(study, "vanilla")
    for trace in ready.traces:
        steps = reasoning_steps(trace, ready.tokenizer)
        held = [p for step in steps for p in range(step.start, step.end)]
        assert held == list(range(trace.prompt_length, trace.reasoning_end))
        assert [step.kind for step in steps[1:]] == ["comparison", "verdict"] * len(trace.answer)
        for step in steps[2::2]:
            assert text_of(ready, trace, step.start, step.end).startswith("=>")
            assert text_of(ready, trace, step.start, step.end).endswith(".")


@pytest.mark.parametrize("chunker", ["average", "search"])
def test_chunks_cover_each_trace_and_end_with_the_label_list(study: Study, chunker: str) -> None:
    ready = Ready(study, "cwt", **{"cwt.chunker": chunker})
    for trace in ready.traces:
        own = [s for s in ready.sequences if s.example == trace.example]
        predicted = [p + 1 for s in own for p in s.predicting]
        assert predicted == list(range(trace.prompt_length, len(trace.tokens)))
        assert own[-1].predicting[0] + 1 == trace.reasoning_end
        assert len(own) == 4
        assert all(s.tokens == tuple(trace.tokens[: len(s.tokens)]) for s in own)
        assert all(s.predicting[-1] == len(s.tokens) - 2 for s in own)


def test_one_chunk_is_the_whole_trace(study: Study) -> None:
    ready = Ready(study, "cwt", **{"cwt.chunks": 1})
    assert ready.sequences == [
        type(s)(s.example, s.tokens, s.predicting, s.weights, s.teacher_rows)
        for s in map(whole_trace, ready.traces)
    ]


def test_chunks_weighted_by_length_add_up_to_plain_token_supervision(study: Study) -> None:
    ready = Ready(study, "cwt")
    ready.model.eval()
    trace = ready.traces[0]
    own = [s for s in ready.sequences if s.example == trace.example]

    def losses(sequences: list[Any]) -> torch.Tensor:
        batch = collate(sequences, ready.tokenizer.pad_token_id, ())
        logs = token_log_probabilities(run(ready.model, batch).logits)
        return negative_log_likelihood(logs, batch.labels)

    with torch.no_grad():
        assert losses(own).sum().item() == pytest.approx(losses([whole_trace(trace)]).sum().item())


def test_cwt_matches_distributions_only_if_told(study: Study) -> None:
    assert set(Ready(study, "cwt").values()) == {"cot_nll"}
    assert set(Ready(study, "cwt", **{"cwt.with_kl": True}).values()) == {"cot_nll", "cot_kl"}


def test_unicott_adds_its_two_terms_to_the_same_loss(study: Study) -> None:
    ready = Ready(study, "unicott")
    found, plain = ready.values(), cot_terms(ready.step(), 0.5)
    assert set(found) == {"cot_nll", "cot_kl", "node_contrast", "node_spread"}
    for name, term in plain.items():
        assert found[name] == pytest.approx(term.value.item())
    assert found["node_contrast"] > 0


def test_unicott_nodes_are_means_over_the_steps_tokens(study: Study) -> None:
    ready = Ready(study, "unicott", **{"unicott.structure": "chain"})
    step = ready.step(2)
    rationales = [ready.method._rationales[name] for name in step.batch.examples]
    nodes, structured = ready.method._nodes(step, rationales)
    row = 0
    for index, of in enumerate(rationales):
        start = int(step.batch.padded.offset[index])
        means = []
        for a, b in of.spans:
            states = [step.passed.hidden[index, start + p] for p in range(a, b)]
            scaled = [h / (h.square().mean() + 1e-6).sqrt() for h in states]
            means.append(sum(scaled) / len(scaled))
        for i, mean in enumerate(means):
            torch.testing.assert_close(nodes[row + i], mean)
            related = sum(of.relation[i, j] * means[j] for j in range(len(means)))
            torch.testing.assert_close(structured[row + i], related)
        row += len(means)


def test_unicott_counts_the_traces_that_are_no_tree(study: Study) -> None:
    ready = Ready(study, "unicott")
    assert ready.method.left_out() == ()
    broken = replace(ready.traces[0], late_start=-1)  # one step only: the overview
    ready.method.prepare([broken, *ready.traces[1:]])
    assert ready.method.left_out() == ("tree: 1 of 14 traces are chains",)


def test_morsd_trains_on_right_unlike_and_easy_rationales(study: Study) -> None:
    ready = Ready(study, "morsd", **{"morsd.share": 1.0})
    table = read_table(study.folder / NEEDS["difficulty"])
    names = {s.example for s in ready.sequences}
    assert ready.method.further_generations() == 28
    # draw 1 repeats the greedy trace; of the two the one first in order stays
    assert not any(name.endswith("/1") for name in names)
    wrong = table[(table.draw == 2) & (table.f1 < 0.5)]
    assert len(wrong) > 0
    assert not names & {f"{example}/2" for example in wrong.example}
    half = Ready(study, "morsd", **{"morsd.share": 0.5})
    assert len(half.sequences) == round(len(ready.sequences) / 2)
    rd = dict(zip(table.example.where(table.draw == 0, table.example + "/2"), table.difficulty))
    kept = max(rd[s.example] for s in half.sequences)
    assert kept <= min([rd[n] for n in names - {s.example for s in half.sequences}])


def test_morsd_has_a_target_for_every_sequence(study: Study) -> None:
    ready = Ready(study, "morsd", **{"morsd.share": 1.0})
    for sequence in ready.sequences:
        kept = ready.targets.examples[sequence.example].kept
        assert len(kept) == len(sequence.predicting)


def test_semcot_without_alignment_is_plain_distillation_behind_implicit_positions(
    study: Study,
) -> None:
    ready = Ready(study, "semcot", **{"semcot.alpha": 0.0})
    terms, plain = ready.method.loss(ready.step()), cot_terms(ready.step(), 0.5)
    for name, term in plain.items():
        assert terms[name].value.item() == pytest.approx(term.value.item())
        assert terms[name].weight == term.weight
    assert terms["implicit_alignment"].weight == 0.0
    assert implicit_tokens(ready.model) == (ready.tokenizer.unk_token_id,) * 3
    for sequence, trace in zip(ready.sequences, ready.traces):
        start = trace.prompt_length
        assert sequence.tokens[start : start + 3] == (ready.tokenizer.unk_token_id,) * 3
        assert [sequence.tokens[p + 1] for p in sequence.predicting] == list(trace.tokens[start:])


def test_semcot_alignment_reads_the_implicit_positions(study: Study) -> None:
    ready = Ready(study, "semcot")
    step = ready.step(2)
    encoded = read_encoder(study.folder / NEEDS["reasoning_encoder"])
    expected = []
    for row, name in enumerate(step.batch.examples):
        start = int(step.batch.padded.offset[row]) + ready.traces[row].prompt_length
        states = step.passed.hidden[row, start : start + 3] @ ready.method._map.weight.T
        seen = encoded.encoder(states[None], torch.ones(1, 3, dtype=torch.long))[0]
        wanted = encoded.embeddings[name]
        expected.append(1 - float((seen @ wanted / (seen.norm() * wanted.norm())).detach()))
    found = ready.method.loss(step)["implicit_alignment"].value.item()
    assert found == pytest.approx(np.mean(expected), abs=1e-5)


def test_contrastive_loss_against_the_formula() -> None:
    generator = torch.Generator().manual_seed(0)
    u, v = (torch.randn(3, 5, generator=generator) for _ in range(2))
    cos = [[float(a @ b / (a.norm() * b.norm())) for b in v] for a in u]
    expected = -np.mean(
        [np.log(np.exp(cos[i][i]) / sum(np.exp(c) for c in cos[i])) for i in range(3)]
    )
    assert contrastive_loss(u, v).item() == pytest.approx(expected, abs=1e-6)
    assert contrastive_loss(u[:1], v[:1]).item() == 0.0


def test_the_condensed_form_names_what_is_kept(study: Study) -> None:
    ready = Ready(study, "vanilla")
    for trace in ready.traces:
        words = ready.tokenizer.decode(list(condensed(trace, ready.tokenizer)))
        assert words.startswith("Overview:")
        assert words.count("=>") == len(trace.answer)
        assert all(code in words for code in trace.answer)
        assert "not" not in words.split()


@pytest.mark.parametrize(
    ("method", "term"),
    [
        ("unicott", "node_contrast"),
        ("unicott", "node_spread"),
        ("morsd", "cot_nll"),
        ("semcot", "implicit_alignment"),
        ("cwt", "cot_nll"),
    ],
)
def test_terms_fall_in_training(trained: dict[str, Path], method: str, term: str) -> None:
    curve = read_table(trained[method] / "curve.parquet").query("metric == @term").value
    assert curve.iloc[-5:].mean() < curve.iloc[:5].mean()


@pytest.fixture(scope="module")
def trained(study: Study, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {}
    for method in ("unicott", "morsd", "semcot", "cwt"):
        folders[method] = tmp_path_factory.mktemp(method)
        run_script("train_student", study.student_arguments(folders[method], method))
    return folders


def test_a_saved_student_is_the_student_alone(study: Study, trained: dict[str, Path]) -> None:
    base = load_model(study.folder / "base.safetensors", study.folder / "base.json")
    for folder in trained.values():
        model = load_model(folder / "model.safetensors", folder / "config.json")
        assert set(model.state_dict()) == set(base.state_dict())
        budget = read_json(folder / "budget.json")
        assert budget["parameters"] == sum(p.numel() for p in base.parameters())
        assert budget["steps"] == TRAINING["steps"]


def test_semcot_students_say_what_they_read(trained: dict[str, Path]) -> None:
    folder = trained["semcot"]
    model = load_model(folder / "model.safetensors", folder / "config.json")
    assert len(implicit_tokens(model)) == 3
