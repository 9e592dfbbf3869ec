from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mechdistill.data.examples import (
    Example,
    draw_cases,
    example_of,
    read_examples,
    write_examples,
)
from mechdistill.data.labels import LabelSpace
from mechdistill.data.notes import Piece, Role
from mechdistill.data.world import WorldSettings
from mechdistill.errors import InputError
from tests.data.conftest import COUNTS

fixtures_are_constant = hypothesis_settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def test_spans_hold_the_words_they_claim(examples: list[Example], space: LabelSpace) -> None:
    for example in examples:
        cues = [example.prompt[start:end] for start, end in example.cues]
        assert cues == [space.label(code).cue for code in example.gold]
        findings = [example.prompt[start:end] for start, end in example.evidence]
        possible = {f for code in example.regions for f in space.region(code).evidence}
        assert findings
        assert set(findings) <= possible


@given(seed=st.integers(0, 2**32 - 1))
@fixtures_are_constant
def test_spans_fall_on_single_tokens(
    seed: int, space: LabelSpace, settings: WorldSettings, tokenizer
) -> None:
    (name, split, case), *_ = draw_cases(space, settings, {"test": 1}, seed)
    example = example_of(case, name, split)
    encoded = tokenizer(example.prompt, return_offsets_mapping=True, add_special_tokens=False)
    offsets = {tuple(span) for span in encoded["offset_mapping"]}
    assert offsets.issuperset([*example.evidence, *example.cues])


def test_splits_have_the_counts_asked_for(examples: list[Example]) -> None:
    found = {split: sum(example.split == split for example in examples) for split in COUNTS}
    assert found == COUNTS
    assert len({example.example for example in examples}) == len(examples)


def test_no_prompt_occurs_twice(examples: list[Example]) -> None:
    assert len({example.prompt for example in examples}) == len(examples)


def test_a_split_does_not_depend_on_the_others(
    space: LabelSpace, settings: WorldSettings, examples: list[Example]
) -> None:
    alone = draw_cases(space, settings, {"ranking": 5}, seed=7)
    expected = [example for example in examples if example.split == "ranking"][:5]
    assert [example_of(case, name, split) for name, split, case in alone] == expected


def test_examples_survive_the_file(examples: list[Example], tmp_path: Path) -> None:
    write_examples(tmp_path / "examples.parquet", examples)
    assert read_examples(tmp_path / "examples.parquet") == examples
    test_only = [example for example in examples if example.split == "test"]
    assert read_examples(tmp_path / "examples.parquet", "test") == test_only


def test_an_empty_split_is_an_error_with_a_remedy(examples: list[Example], tmp_path: Path) -> None:
    write_examples(tmp_path / "examples.parquet", examples[:1])
    with pytest.raises(InputError, match="test"):
        read_examples(tmp_path / "examples.parquet", "test")


def test_unknown_split_is_named(space: LabelSpace, settings: WorldSettings) -> None:
    with pytest.raises(InputError, match="tset"):
        draw_cases(space, settings, {"tset": 1}, seed=0)


def test_every_piece_has_a_role(cases) -> None:
    for _, _, case in cases:
        assert all(isinstance(piece, Piece) and piece.role in Role for piece in case.pieces)
