"""Words, patterns and spans are found where they are, and nowhere else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.data.places_in_text import Part, check_seam, listed, occurrences, spans_of
from mechdistill.errors import InputError

TEXT = "Heart failure, acute heart failure; heart failures. Then heart failure."
WHOLE = Part("the text", 0, len(TEXT))


@pytest.mark.parametrize("place", ["heart failure", re.compile("fail"), (3, 9)])
def test_one_place_is_a_list_of_one(place) -> None:
    assert listed(place) == [place]
    assert listed([place, "x"]) == [place, "x"]


def test_words_are_whole_and_the_longest_wins() -> None:
    found = occurrences(TEXT, ["heart failure", "acute heart failure"])
    assert [words for words, _ in found] == ["acute heart failure", "heart failure"]
    assert all(TEXT[start:end] == words for words, (start, end) in found)


words = st.text(st.sampled_from("ab .("), min_size=1, max_size=4)


@given(text=st.text(st.sampled_from("ab .("), max_size=20), wanted=st.lists(words, max_size=3))
def test_occurrences_are_the_words_themselves_apart_and_in_order(text, wanted) -> None:
    found = occurrences(text, wanted)
    assert all(text[start:end] == words and words in wanted for words, (start, end) in found)
    ends = [end for _, (_, end) in found]
    assert all(start >= end for (_, (start, _)), end in zip(found[1:], ends))
    for _, (start, end) in found:
        beyond = text[start - 1 : start] + text[end : end + 1]
        assert not re.search(r"\w", beyond)


def test_places_are_looked_for_in_their_part_alone() -> None:
    part = Part("the end", 50, len(TEXT))
    assert spans_of("heart failure", TEXT, "anchor", part) == [(57, 70)]
    assert spans_of(re.compile("heart|Then"), TEXT, "anchor", part) == [(52, 56), (57, 62)]
    assert spans_of((0, 5), TEXT, "anchor", part) == [(0, 5)]


@pytest.mark.parametrize(
    ("place", "message", "remedy"),
    [
        ("Acute", "anchor: 'Acute' is not in the text", "case counts"),
        (" ", "text to look for is empty", "at least one word"),
        (re.compile("z+"), r"pattern 'z\+' matches nothing in the text", "span of characters"),
        (re.compile("z*"), r"pattern 'z\*' matches nothing", "change it"),
        ((5, 5), r"span \(5, 5\) is empty", "start, end"),
        ((60, 99), r"\(60, 99\) reaches beyond the text's 71 characters", "prompt \\+ reasoning"),
        ((-3, 2), "reaches beyond", "from 0"),
    ],
)
def test_what_is_nowhere_is_named(place, message, remedy) -> None:
    with pytest.raises(InputError, match=f"(?s){message}.*{remedy}"):
        spans_of(place, TEXT, "anchor", WHOLE)


def test_what_stands_elsewhere_is_said_to() -> None:
    with pytest.raises(InputError, match="stands elsewhere"):
        spans_of("Then", TEXT, "anchor", Part("the beginning", 0, 20))


@pytest.mark.parametrize(
    ("before", "after"), [("It is", " acute"), ("It is ", "acute"), ("It is.", "So"), ("a\n", "b")]
)
def test_texts_that_part_at_a_word_join(before, after) -> None:
    check_seam(before, after, "pair 1")


def test_a_word_that_runs_into_the_next_is_refused() -> None:
    with pytest.raises(InputError, match="'It is' runs into 'acute'"):
        check_seam("It is", "acute", "pair 1")
    with pytest.raises(InputError, match="empty prompt"):
        check_seam(" ", "acute", "pair 1")
