"""A small real world: 8 categories of ICD-10-CM, 4 leaves each."""

import pytest
from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import Example, draw_cases, example_of
from mechdistill.data.labels import LabelSpace, build_label_space
from mechdistill.data.tokenizer import build_tokenizer
from mechdistill.data.world import Case, WorldSettings
from tests.small_tokenizers import byte_level

COUNTS = {"training": 60, "validation": 20, "ranking": 20, "patching": 20, "test": 40}


@pytest.fixture(scope="session")
def space() -> LabelSpace:
    return build_label_space(
        seed=7, regions=8, labels_per_region=4, evidence_per_region=4, never_gold=2
    )


@pytest.fixture(scope="session")
def settings() -> WorldSettings:
    return WorldSettings(seed=7, groups_in_context=4, problems_min=1, problems_max=2)


@pytest.fixture(scope="session")
def tokenizer(space: LabelSpace) -> PreTrainedTokenizerFast:
    return build_tokenizer(space)


@pytest.fixture(scope="session")
def cases(space: LabelSpace, settings: WorldSettings) -> list[tuple[str, str, Case]]:
    return draw_cases(space, settings, COUNTS, seed=7)


@pytest.fixture(scope="session")
def examples(cases: list[tuple[str, str, Case]]) -> list[Example]:
    return [example_of(case, name, split) for name, split, case in cases]


@pytest.fixture(scope="session")
def pieces(cases: list[tuple[str, str, Case]]) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer that cuts the world's words into pieces."""
    texts = [text for _, _, case in cases for text in (case.prompt, " ".join(case.reference))]
    return byte_level(texts, size=700)
