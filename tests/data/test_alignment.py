"""Groups and query positions that two tokenisations share, against byte-by-byte oracles."""

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mechdistill.data.alignment import BUCKET, align
from mechdistill.data.student_tokenizer import train_byte_level_bpe
from mechdistill.data.token_ends import INSIDE, TokenEnds, ends_in_text
from tests.data.test_token_ends import TEXTS, TOKENIZERS, any_text
from tests.small_tokenizers import BEGIN, END, byte_level, normalising

OTHER = {**TOKENIZERS, "coarser": byte_level(TEXTS * 3, size=520, adds_begin=True)}
OTHER["composing"] = normalising(TOKENIZERS["byte_level"], "NFC")
OTHER["decomposing"] = normalising(TOKENIZERS["byte_level"], "NFD")


def tokenisation(size: int):
    """Any cuts of a text of `size` bytes, some ends unknown, some tokens without text."""

    @st.composite
    def drawn(draw):
        cuts = sorted([*draw(st.lists(st.integers(0, size), max_size=size + 3)), size])
        ends = [INSIDE if draw(st.integers(0, 9)) == 0 and end != size else end for end in cuts]
        return TokenEnds(size, tuple(ends), (False,) * len(ends))

    return drawn()


@st.composite
def pairs(draw):
    size = draw(st.integers(1, 14))
    return draw(tokenisation(size)), draw(tokenisation(size))


def none(side: TokenEnds) -> list[bool]:
    return [False] * len(side)


def bytes_of(side: TokenEnds, token: int) -> set[int]:
    return set(range(*side.spelled(token)))


def connected(first: TokenEnds, second: TokenEnds) -> list[set[int]]:
    """Bytes that hang together: tokens that share a byte are merged, until none do."""
    parts = [bytes_of(side, t) for side in (first, second) for t in range(len(side))]
    parts = [part for part in parts if part]
    merged = True
    while merged:
        merged = False
        for i, part in enumerate(parts):
            for other in parts[i + 1 :]:
                if part & other:
                    parts.remove(other)
                    part |= other
                    merged = True
                    break
            if merged:
                break
    return sorted(parts, key=min)


@given(pair=pairs())
@hypothesis_settings(max_examples=300)
def test_groups_are_the_smallest_stretches_that_no_token_crosses(pair) -> None:
    first, second = pair
    found = align(first, second, none(first), none(second))
    groups = connected(first, second)
    assert found.count == len(groups)
    for side, group_of in ((first, found.first), (second, found.second)):
        assert list(group_of) == sorted(group_of)
        assert set(group_of) == set(range(found.count))
        for token, group in enumerate(group_of):
            assert bytes_of(side, token) <= groups[group]


@given(pair=pairs())
@hypothesis_settings(max_examples=300)
def test_shared_queries_see_the_same_text_and_go_on_in_order(pair) -> None:
    first, second = pair
    found = align(first, second, none(first), none(second)).queries
    assert list(found) == sorted(found)
    assert list(found.values()) == sorted(set(found.values()))
    expected = {
        (i, j)
        for i, end in enumerate(first.ends[:-1])
        for j, other in enumerate(second.ends[:-1])
        if end == other != INSIDE
        and end not in first.ends[i + 1 : -1]
        and end not in second.ends[j + 1 : -1]
    }
    assert set(found.items()) == expected


@given(pair=pairs())
def test_what_a_shared_query_sees_is_whole_groups(pair) -> None:
    """Else a row over groups would hold a part of one."""
    first, second = pair
    found = align(first, second, none(first), none(second))
    for query, other in found.queries.items():
        assert set(found.first[: query + 1]) == set(found.second[: other + 1])
        if first.ends[query]:
            assert found.first[query + 1] in (found.first[query], found.first[query] + 1)
            cut = set(found.first[: query + 1]) & set(found.first[query + 1 :])
            assert all(
                not bytes_of(first, t)
                for t in range(query + 1, len(first))
                if found.first[t] in cut
            )


@given(side=st.integers(1, 14).flatmap(tokenisation))
def test_a_tokenisation_is_aligned_with_itself_token_by_token(side) -> None:
    found = align(side, side, none(side), none(side))
    assert found.first == found.second
    spelling = [t for t in range(len(side)) if bytes_of(side, t) and INSIDE not in side.ends]
    assert len({found.first[t] for t in spelling}) == len(spelling)
    assert all(query == other for query, other in found.queries.items())


@given(data=st.data())
def test_alignments_compose(data) -> None:
    size = data.draw(st.integers(1, 14))
    a, b, c = (data.draw(tokenisation(size)) for _ in range(3))
    ab, bc, ac = (align(x, y, none(x), none(y)) for x, y in ((a, b), (b, c), (a, c)))
    through = {q: bc.queries[r] for q, r in ab.queries.items() if r in bc.queries}
    assert through.items() <= ac.queries.items()


@given(pair=pairs(), data=st.data())
def test_sinks_of_either_side_take_the_text_that_they_spell_into_the_bucket(pair, data) -> None:
    first, second = pair
    sinks = [data.draw(st.lists(st.booleans(), min_size=len(s), max_size=len(s))) for s in pair]
    found = align(first, second, *sinks)
    plain = align(first, second, none(first), none(second))
    sides = list(zip(pair, (found.first, found.second), (plain.first, plain.second), sinks))
    lost = {p[t] for s, _, p, sink in sides for t in range(len(s)) if sink[t] and bytes_of(s, t)}
    kept = sorted(set(range(plain.count)) - lost)
    assert found.count == len(kept)
    for side, groups, before, sink in sides:
        for token in range(len(side)):
            gone = sink[token] or before[token] in lost
            assert groups[token] == (BUCKET if gone else kept.index(before[token]))
    assert found.queries == plain.queries


@pytest.mark.parametrize("first", OTHER)
@pytest.mark.parametrize("second", OTHER)
@given(text=any_text.filter(str.strip))
@hypothesis_settings(max_examples=15)
def test_tokenizers_share_the_text_of_every_group(first, second, text) -> None:
    one, other = (
        ends_in_text(OTHER[name], text, add_special_tokens=True).filled()
        for name in (first, second)
    )
    found = align(one, other, one.special, other.special)
    for group in range(found.count):
        stretches = [
            set().union(*(bytes_of(side, t) for t, g in enumerate(groups) if g == group))
            for side, groups in ((one, found.first), (other, found.second))
        ]
        assert stretches[0] == stretches[1] != set()
    if first == second:
        assert found.first == found.second


@given(words=st.lists(st.sampled_from(["#1", ",", "or", "since", "."]), min_size=1, max_size=8))
def test_words_of_the_world_are_groups_of_pieces(tokenizer, words) -> None:
    text = " ".join(words)
    world = ends_in_text(tokenizer, text, add_special_tokens=True)
    pieces = ends_in_text(TOKENIZERS["byte_level"], text, add_special_tokens=False)
    found = align(world, pieces, world.special, pieces.special)
    assert found.first == (BUCKET, *range(len(words)))
    assert set(found.second) == set(range(len(words)))


WHITE = st.text(st.sampled_from(" \n\t\u00a0\u2009"), min_size=1, max_size=3)


@pytest.mark.parametrize("name", OTHER)
@given(data=st.data())
@hypothesis_settings(max_examples=25)
def test_white_space_of_any_kind_and_length_parts_no_shared_words(tokenizer, name, data) -> None:
    """The world's tokenizer drops it, others keep it, each run in tokens of its own or none."""
    parts = [data.draw(st.sampled_from(["#1", ",", "or", "since", "."]))]
    for _ in range(data.draw(st.integers(0, 6))):
        parts += [data.draw(WHITE), data.draw(st.sampled_from(["#1", ",", "or", "since", "."]))]
    text = "".join(parts)
    world = ends_in_text(tokenizer, text, add_special_tokens=True)
    pieces = ends_in_text(OTHER[name], text, add_special_tokens=True)
    found = align(world, pieces, world.special, pieces.special)
    words = range(len(parts[::2]))
    assert found.first == (BUCKET, *words)
    text_of = [g for g, special in zip(found.second, pieces.special, strict=True) if not special]
    assert text_of == sorted(text_of)
    assert set(text_of) == set(words)


MARKS = {**OTHER, "without_marks": train_byte_level_bpe(TEXTS * 3, 420)}


@pytest.mark.parametrize("second", MARKS)
@given(text=any_text)
@hypothesis_settings(max_examples=25)
def test_marks_of_a_chat_template_have_no_group_and_what_is_said_has(second, text) -> None:
    """Marks are special tokens of all but the last, of which they are text."""
    prompt = OTHER["byte_level"].apply_chat_template(
        [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
    )
    one, other = (
        ends_in_text(MARKS[name], prompt, add_special_tokens=False).filled()
        for name in ("byte_level", second)
    )
    found = align(one, other, one.special, other.special)
    marks = set().union(*(bytes_of(one, token) for token, mark in enumerate(one.special) if mark))
    assert len(marks) == len((2 * BEGIN + END).encode())
    for side, groups in ((one, found.first), (other, found.second)):
        shared = [bytes_of(side, token) for token, g in enumerate(groups) if g != BUCKET]
        said = set().union(*shared)
        assert not said & marks
        assert second == "without_marks" or said == set(range(one.size)) - marks


def test_only_text_of_one_length_is_aligned() -> None:
    with pytest.raises(ValueError, match="3 and of 4 bytes"):
        align(TokenEnds(3, (3,), (False,)), TokenEnds(4, (4,), (False,)), [False], [False])


def test_a_dropped_space_at_the_end_keeps_nothing_apart(tokenizer) -> None:
    text = "or since \n"
    world = ends_in_text(tokenizer, text, add_special_tokens=False)
    pieces = ends_in_text(TOKENIZERS["byte_level"], text, add_special_tokens=False)
    found = align(world, pieces, world.special, pieces.special)
    assert found.count == 2
    assert set(found.second) == {0, 1}
