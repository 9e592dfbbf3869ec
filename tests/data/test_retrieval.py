"""BM25 over labels against the formula, written out word by word."""

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdistill.data.labels import Document, LabelSpace
from mechdistill.data.retrieval import K1, B, LabelRetriever, words_of
from tests.small_space import small_space

SPACE = small_space()

WORDS = sorted(
    {
        word
        for label in SPACE.labels
        for text in (label.description, SPACE.region(label.region).name)
        for word in words_of(text)
    }
)


def slow_scores(space: LabelSpace, note: str) -> dict[str, float]:
    """Score of each label by the formula."""
    labels = {}
    for label in space.labels:
        region = space.region(label.region)
        labels[label.code] = words_of(" ".join([label.description, region.name, *region.evidence]))
    mean = sum(len(words) for words in labels.values()) / len(labels)
    scores = dict.fromkeys(labels, 0.0)
    for word in set(words_of(note)):
        having = sum(word in words for words in labels.values())
        idf = math.log(1 + (len(labels) - having + 0.5) / (having + 0.5))
        for code, words in labels.items():
            count = words.count(word)
            scores[code] += idf * count / (count + K1 * (1 - B + B * len(words) / mean))
    return scores


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*WORDS, "unheard", "of"]), max_size=8))
def test_order_is_that_of_the_formula(words: list[str]) -> None:
    note = " ".join(words)
    scores = slow_scores(SPACE, note)
    ranked = LabelRetriever(SPACE).ranked(note)
    assert sorted(ranked) == sorted(scores)
    for better, worse in itertools.pairwise(ranked):
        assert scores[better] >= scores[worse] - 1e-9


def test_words_that_no_label_has_leave_the_order_of_the_space() -> None:
    codes = [label.code for label in SPACE.labels]
    assert LabelRetriever(SPACE).ranked("") == codes
    assert LabelRetriever(SPACE).ranked("unheard of") == codes


def test_a_word_counts_once_and_case_does_not() -> None:
    retriever, word = LabelRetriever(SPACE), WORDS[-1]
    assert retriever.ranked(f"{word} {word.upper()} {WORDS[0]}") == retriever.ranked(
        f"{WORDS[0]} {word}"
    )


def test_how_often_a_label_is_true_does_not_matter() -> None:
    code = SPACE.labels[-1].code
    more = replace(SPACE, documents=(Document("d", (code,), (), ()),) * 9)
    note = " ".join(WORDS[:3])
    assert LabelRetriever(more).ranked(note) == LabelRetriever(SPACE).ranked(note)


@pytest.mark.parametrize("text", ["I50.21", "systolic-diastolic"])
def test_marks_part_words(text: str) -> None:
    assert len(words_of(text)) == 2
