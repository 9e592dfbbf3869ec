"""Twins under a tokenizer that cuts words: equal lengths at the same places, or no twin."""

from dataclasses import replace

import pytest

from mechdistill.data.card import data_card
from mechdistill.data.examples import example_of
from mechdistill.data.frame import Frame
from mechdistill.data.token_spans import covering
from mechdistill.data.tokenizer import encode_prompt, prompt_spans
from mechdistill.data.twins import TWINS, twins_of
from mechdistill.data.wording import CLINICAL, NEUTRAL_WORDS


@pytest.fixture(scope="module", params=[("plain", 0), ("chat", 1)])
def framed(request, cases, pieces):
    frame = Frame.of(pieces, *request.param)
    return [example_of(case, name, "patching", frame) for name, _, case in cases]


@pytest.fixture(scope="module")
def pairs(framed, space, pieces):
    return [(e, twin) for e in framed for twin in twins_of(e, space, pieces, seed=7)]


def tokens(spans, span):
    """With the space before."""
    return covering(spans, (span[0] - 1, span[1]))


def test_twins_align_and_differ_at_what_is_replaced_alone(pairs, pieces) -> None:
    assert {twin.twin for _, twin in pairs} == set(TWINS)
    for example, twin in pairs:
        before, spans = prompt_spans(pieces, example.prompt)
        after, changed_spans = prompt_spans(pieces, twin.prompt)
        assert len(after) == len(before)
        different = {p for p, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
        assert different
        assert len(different) == twin.n_tokens_changed
        changed = {p for span in twin.changed for p in tokens(changed_spans, span)}
        assert different <= changed
        if twin.twin == "K1":
            replaced = [*example.evidence, *example.cues]
            assert changed == {p for span in replaced for p in tokens(spans, span)}
            assert len(twin.changed) == len(replaced)
        if twin.twin == "K2":
            assert changed == {p for span in example.cues for p in tokens(spans, span)}


def test_neutral_twins_hold_neutral_words_alone(pairs) -> None:
    words = {
        word
        for phrase in (*CLINICAL.fillers, *CLINICAL.neutral_cues, *NEUTRAL_WORDS)
        for word in phrase.split()
    }
    for _, twin in pairs:
        if twin.twin == "K1":
            for span in twin.changed:
                assert set(twin.prompt[slice(*span)].split()) <= words


def test_flipped_twins_name_the_near_miss(pairs, space) -> None:
    filled = 0
    for example, twin in pairs:
        if twin.twin == "K2":
            for span, near in zip(twin.changed, example.near, strict=True):
                text, cue = twin.prompt[slice(*span)], space.label(near).cue
                assert text == cue or text.removeprefix(f"{cue} ") in NEUTRAL_WORDS
                filled += text != cue
    assert filled  # some cue is shorter than the one it replaces


def test_shams_change_indifferent_words_of_the_note_itself(pairs) -> None:
    indifferent = {word for kind in CLINICAL.indifferent for word in kind}
    for example, twin in pairs:
        if twin.twin == "K0":
            assert {twin.prompt[slice(*span)] for span in twin.changed} <= indifferent
            note = example.prompt.rindex("History:")
            assert twin.prompt[:note] == example.prompt[:note]


def test_a_note_whose_cues_differ_in_length_has_no_flipped_twin_and_is_counted(
    framed, space, pieces
) -> None:
    usual = {e.example: len(twins_of(e, space, pieces, seed=7)) for e in framed[:20]}
    example = next(e for e in framed if len(e.gold) == 1 and usual[e.example] == len(TWINS))
    longer = f"{space.label(example.gold[0]).cue} and then some more words"
    labels = tuple(
        replace(label, cue=longer) if label.code == example.near[0] else label
        for label in space.labels
    )
    twins = twins_of(example, replace(space, labels=labels), pieces, seed=7)
    assert [twin.twin for twin in twins] == ["K0", "K1"]
    card = data_card(space, pieces, [replace(example, split=s) for s in ("training", "patching")],
                     twins, {}, {})  # fmt: skip
    (row,) = [line for line in card.splitlines() if line.startswith("| K2 |")]
    assert row.endswith("| 0 | 1 | - |")
    assert "One token stands for a whole concept" not in card


def test_the_prompt_is_tokenised_once(framed, pieces) -> None:
    for example in framed[:5]:
        assert encode_prompt(pieces, example.prompt) == prompt_spans(pieces, example.prompt)[0]
