"""References of a small world, and parsing with that world's tokenizer."""

from collections.abc import Callable, Sequence

import pytest
from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import Example, draw_cases, example_of
from mechdistill.data.labels import Label, LabelSpace, Region
from mechdistill.data.tokenizer import build_tokenizer
from mechdistill.data.world import WorldSettings
from mechdistill.traces.parse import Trace, parse_trace

NAMES = ("heart failure", "asthma", "gout", "migraine", "cystitis")
CUES = ("acute", "chronic", "left")


@pytest.fixture(scope="session")
def space() -> LabelSpace:
    regions = tuple(
        Region(f"R{i}", name, (f"{name} sign", f"{name} test")) for i, name in enumerate(NAMES)
    )
    labels = tuple(
        Label(f"{r.code}.{k}", f"{r.code}.{k} {cue} {r.name}", r.code, cue, f"{cue} {r.name}")
        for r in regions
        for k, cue in enumerate(CUES)
    )
    return LabelSpace(regions, labels, (), "invented for the tests")


@pytest.fixture(scope="session")
def tokenizer(space: LabelSpace) -> PreTrainedTokenizerFast:
    return build_tokenizer(space)


@pytest.fixture(scope="session")
def examples(space: LabelSpace) -> list[Example]:
    settings = WorldSettings(seed=0, groups_in_context=4, problems_min=1, problems_max=2)
    cases = draw_cases(space, settings, {"training": 30, "ranking": 10}, seed=0)
    return [example_of(case, name, split) for name, split, case in cases]


@pytest.fixture(scope="session")
def parse(
    space: LabelSpace, tokenizer: PreTrainedTokenizerFast
) -> Callable[[Example, str | Sequence[int]], Trace]:
    """Parse the text of a trace (with <eos> where it is written) or its token ids."""

    def parse_text(example: Example, text: str | Sequence[int], early_tokens: int = 30) -> Trace:
        ids = text
        if isinstance(text, str):
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        return parse_trace(example, ids, tokenizer, space, early_tokens)

    return parse_text
