"""A small world with parsed reference traces, and an encoder whose embeddings can be worked out."""

import numpy as np
import pytest

from mechdistill.data.examples import draw_cases, example_of
from mechdistill.data.tokenizer import build_tokenizer, encode_trace
from mechdistill.data.world import WorldSettings
from mechdistill.evaluate.anchors import text_anchors
from mechdistill.models.loading import build_model
from mechdistill.traces.parse import parse_trace
from tests.small_space import small_space

ARCHITECTURE = {
    "family": "llama",
    "hidden_size": 16,
    "layers": 2,
    "heads": 2,
    "kv_heads": 1,
    "intermediate_size": 16,
    "rope_theta": 100.0,
}


class BagOfWords:
    """e(text) = unit vector of its word counts; the same interface as the sentence encoder."""

    dimension = 997

    def __init__(self):
        self.columns = {}

    def encode(self, texts):
        rows = np.zeros((len(texts), self.dimension))
        for row, text in zip(rows, texts, strict=True):
            for word in text.replace(",", " ").split():
                row[self.columns.setdefault(word, len(self.columns))] += 1
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.where(norms == 0, 1, norms)).astype(np.float32)


@pytest.fixture(scope="session")
def space():
    return small_space()


@pytest.fixture(scope="session")
def tokenizer(space):
    return build_tokenizer(space)


@pytest.fixture(scope="session")
def examples(space):
    settings = WorldSettings(seed=0, groups_in_context=4, problems_min=1, problems_max=2)
    cases = draw_cases(space, settings, {"test": 12}, seed=0)
    return [example_of(case, name, split) for name, split, case in cases]


@pytest.fixture(scope="session")
def parse(space, tokenizer):
    """Parse a text as what a model wrote after an example's prompt."""

    def parsed(example, text, finished=True):
        ids = encode_trace(tokenizer, text)
        return parse_trace(example, ids if finished else ids[:-1], tokenizer, space, 30)

    return parsed


@pytest.fixture(scope="session")
def traces(examples, parse):
    return [parse(example, example.reference) for example in examples]


@pytest.fixture(scope="session")
def encoder():
    return BagOfWords()


@pytest.fixture(scope="session")
def anchors(examples, space, encoder):
    return text_anchors(examples, space, encoder)


@pytest.fixture(scope="session")
def regions(examples):
    return {example.example: frozenset(example.regions) for example in examples}


@pytest.fixture(scope="session")
def model(tokenizer):
    return build_model(
        ARCHITECTURE,
        vocab_size=len(tokenizer),
        pad_id=tokenizer.pad_token_id,
        bos_id=tokenizer.bos_token_id,
        eos_id=tokenizer.eos_token_id,
        max_positions=256,
        seed=0,
    ).eval()
