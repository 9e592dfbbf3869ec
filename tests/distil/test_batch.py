"""Padded batches against the unpadded sequences that they hold."""

from __future__ import annotations

from dataclasses import replace

import torch

from mechdistill.distil.batch import collate, collate_signals, collate_tokens
from mechdistill.distil.forward import run
from mechdistill.distil.sequences import TrainingSequence
from tests.distil.conftest import PAD, SPECIAL
from tests.distil.test_targets import example


def test_each_predicted_token_is_labelled_with_its_successor(sequences) -> None:
    batch = collate(sequences, PAD, SPECIAL)
    expected = [s.tokens[p + 1] for s in sequences for p in s.predicting]
    assert batch.labels.tolist() == expected


def test_logits_are_those_of_each_sequence_alone(student, sequences) -> None:
    batch = collate(sequences, PAD, SPECIAL)
    together = run(student, batch).logits
    alone = [student(torch.tensor([s.tokens])).logits[0, list(s.predicting)] for s in sequences]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-3, atol=1e-3)


def test_slots_point_at_the_tokens_of_their_sequence(sequences) -> None:
    batch = collate(sequences, PAD, SPECIAL)
    slots = batch.slots
    for row, sequence in enumerate(sequences):
        early = [q for q in slots.early[row].tolist() if q >= 0]
        ids = batch.padded.ids[row]
        assert ids[early].tolist() == [sequence.tokens[q] for q in sequence.early]
        for slot, at in enumerate(sequence.refine):
            assert ids[slots.refine[row, slot]] == sequence.tokens[at.query]
            for members, expected in (
                (slots.shortlist, at.shortlist),
                (slots.near_miss, at.near_miss),
            ):
                positions = slots.mentions[row][members[row, slot]] - slots.offset[row]
                assert positions.tolist() == sorted(expected)


def test_sinks_are_the_first_tokens(sequences) -> None:
    slots = collate(sequences, PAD, SPECIAL).slots
    for row, start in enumerate(slots.offset.tolist()):
        assert slots.sink_keys()[row, 0].nonzero().flatten().tolist() == [start]


def test_teacher_signals_stand_at_their_slots(sequences: list[TrainingSequence]) -> None:
    targets = {
        s.example: example(len(s.predicting), len(s.early), len(s.refine), len(s.tokens))
        for s in sequences
    }
    batch = collate(sequences, PAD, SPECIAL)
    signals = collate_signals(sequences, targets, batch.slots)
    for row, s in enumerate(sequences):
        start = int(batch.slots.offset[row])
        of = targets[s.example]
        assert torch.equal(signals.coarse.rows[row, : len(s.early), start:], of.rows)
        assert not signals.coarse.rows[row, :, :start].any()
        assert torch.equal(signals.coarse.alignment[row, : len(s.early)], of.alignment)
        assert torch.equal(signals.refine.help[row, : len(s.refine)], of.help)


def test_tokens_without_a_cached_teacher_are_marked(sequences: list[TrainingSequence]) -> None:
    first = sequences[0]
    count = len(first.predicting)
    targets = {first.example: example(count, 6, 2, len(first.tokens))}
    part = replace(
        first,
        predicting=first.predicting[3:6],
        weights=(1.0,) * 3,
        teacher_rows=(3, -1, 5),
    )
    tokens = collate_tokens([part], targets)
    assert tokens.given.tolist() == [True, False, True]
    assert torch.equal(tokens.log_probabilities[2], targets[first.example].log_probabilities[5])
