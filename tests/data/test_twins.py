from pathlib import Path

import pytest

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.tokenizer import encode_prompt
from mechdistill.data.twins import (
    TWINS,
    Twin,
    read_twins,
    replace_spans,
    twins_of,
    write_twins,
)
from mechdistill.data.wording import CLINICAL
from mechdistill.errors import InputError


@pytest.fixture(scope="module")
def pairs(examples: list[Example], space: LabelSpace, tokenizer) -> list[tuple[Example, Twin]]:
    return [
        (example, twin)
        for example in examples
        if example.split == "patching"
        for twin in twins_of(example, space, tokenizer, seed=7)
    ]


def changed_tokens(example: Example, twin: Twin, tokenizer) -> list[tuple[str, str]]:
    before = tokenizer.convert_ids_to_tokens(encode_prompt(tokenizer, example.prompt))
    after = tokenizer.convert_ids_to_tokens(encode_prompt(tokenizer, twin.prompt))
    assert len(before) == len(after)
    return [(a, b) for a, b in zip(before, after, strict=True) if a != b]


def words_at(text: str, spans: tuple[tuple[int, int], ...]) -> list[str]:
    return [text[start:end] for start, end in spans]


def test_neutral_twin_says_nothing_of_region_or_code(pairs, tokenizer) -> None:
    for example, twin in pairs:
        if twin.twin == "K1":
            changes = changed_tokens(example, twin, tokenizer)
            decisive = sorted([*example.evidence, *example.cues])
            assert [old for old, _ in changes] == words_at(example.prompt, tuple(decisive))
            assert {new for _, new in changes} <= {*CLINICAL.fillers, *CLINICAL.neutral_cues}


def test_flipped_twin_has_the_cue_of_the_near_miss(pairs, space, tokenizer) -> None:
    for example, twin in pairs:
        if twin.twin == "K2":
            changes = changed_tokens(example, twin, tokenizer)
            assert [old for old, _ in changes] == [space.label(c).cue for c in example.gold]
            assert [new for _, new in changes] == [space.label(c).cue for c in example.near]


def test_sham_leaves_findings_cues_and_regions_alone(pairs, space, tokenizer) -> None:
    concepts = {region.name for region in space.regions}
    concepts |= {finding for region in space.regions for finding in region.evidence}
    concepts |= {label.cue for label in space.labels} | {label.text for label in space.labels}
    for example, twin in pairs:
        if twin.twin == "K0":
            changes = changed_tokens(example, twin, tokenizer)
            assert changes
            assert concepts.isdisjoint(word for change in changes for word in change)


def test_changed_spans_are_those_of_the_twin(pairs, tokenizer) -> None:
    for example, twin in pairs:
        news = [new for _, new in changed_tokens(example, twin, tokenizer)]
        assert words_at(twin.prompt, twin.changed) == news
        assert twin.n_tokens_changed == len(news)


def test_sham_changes_about_as_many_tokens_as_neutral(pairs) -> None:
    counts = {(example.example, twin.twin): twin.n_tokens_changed for example, twin in pairs}
    shares = [counts[name, "K0"] / counts[name, "K1"] for name, kind in counts if kind == "K0"]
    assert max(shares) <= 1
    assert sum(shares) / len(shares) > 0.9


def test_twins_depend_on_seed_and_example_alone(examples, space, tokenizer) -> None:
    first = twins_of(examples[0], space, tokenizer, seed=7)
    assert twins_of(examples[0], space, tokenizer, seed=7) == first
    assert twins_of(examples[0], space, tokenizer, seed=8) != first


def test_twins_survive_the_file(pairs, tmp_path: Path) -> None:
    twins = [twin for _, twin in pairs]
    write_twins(tmp_path / "twins.parquet", twins)
    read = read_twins(tmp_path / "twins.parquet")
    assert list(read.values()) == twins
    assert {kind for _, kind in read} == set(TWINS)


def test_replaced_spans_may_change_length() -> None:
    text, spans = replace_spans("a bb c", {(2, 4): "xxxx", (0, 1): ""})
    assert text == " xxxx c"
    assert [text[a:b] for a, b in spans] == ["", "xxxx"]


def test_a_label_space_of_another_run_is_noticed(examples, space, tokenizer) -> None:
    from dataclasses import replace

    labels = tuple(replace(label, cue="never heard of") for label in space.labels)
    with pytest.raises(InputError, match="does not align"):
        twins_of(examples[0], replace(space, labels=labels), tokenizer, seed=7)
