from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mechdistill.data.labels import Label, LabelSpace, Region
from mechdistill.data.tokenizer import vocabulary
from mechdistill.data.units import Lexicon, cut


@pytest.fixture(scope="module")
def small() -> LabelSpace:
    region = Region("I50", "heart failure", ("heart failure sign",))
    other = Region("I10", "hypertension", ("headache",))
    labels = (
        Label("I50.2", "I50.2 acute heart failure", "I50", "acute", ""),
        Label("I50.21", "I50.21 acute systolic heart failure", "I50", "acute systolic", ""),
        Label("I10", "I10 hypertension", "I10", "plain", ""),
    )
    return LabelSpace((region, other), labels, (), "invented for the tests")


def named(text: str, space: LabelSpace) -> list[tuple[str, str]]:
    units = cut(text, Lexicon.of(space, ["<end>"]))
    return [(unit.kind, unit.key) for unit in units if unit.kind != "word"]


def test_the_longest_phrase_is_taken(small) -> None:
    assert named("I50.21 acute systolic heart failure", small) == [("label", "I50.21")]
    assert named("heart failure sign , heart failure", small) == [("region", "I50")]
    assert named("I50.2 acute systolic", small) == [("label", "I50.2")]  # the code alone


@pytest.mark.parametrize(
    "text",
    [
        "#1 heart failure (a) => (b) . Answer: I50.2 acute heart failure .",
        "#1  heart\nfailure(a)=>(b).\n\nAnswer:I50.2\tacute heart  failure.",
        " # 1 heart failure ( a ) = > (b) . Answer : I50.2 acute heart failure . ",
    ],
)
def test_white_space_between_parts_does_not_matter(small, text) -> None:
    assert named(text, small) == [
        ("number", "1"),
        ("region", "I50"),
        ("option", "(a)"),
        ("verdict", "=>"),
        ("option", "(b)"),
        ("stop", "."),
        ("answer", "Answer:"),
        ("label", "I50.2"),
        ("stop", "."),
    ]


def test_other_codes_are_single_words(small) -> None:
    """A full stop inside a code ends no answer, and a code is not the beginning of another one."""
    units = cut("J18.9 and I10.9 or #12 x-ray", Lexicon.of(small, []))
    assert [unit.kind for unit in units] == ["word"] * 7
    assert [unit.end - unit.start for unit in units] == [5, 3, 5, 2, 1, 2, 5]
    assert named("I10. Answer:", small) == [("label", "I10"), ("stop", "."), ("answer", "Answer:")]
    assert named("heartfailure heart failures", small) == []


def test_a_special_token_is_one_unit(small) -> None:
    units = cut("#1 <end> #2", Lexicon.of(small, ["<end>"]))
    assert [unit.key for unit in units] == ["1", "<end>", "2"]


@given(data=st.data())
@hypothesis_settings(max_examples=100)
def test_units_are_the_words_that_were_joined(data, space, tokenizer) -> None:
    """Leaves out words that together spell a longer phrase: there the longer one is meant."""
    words = data.draw(st.lists(st.sampled_from(vocabulary(space)[4:]), max_size=20))
    words = [word for word in words if word != "not"]
    text = " ".join(words)
    units = cut(text, Lexicon.of(space, tokenizer.all_special_tokens))
    assert [text[unit.start : unit.end] for unit in units] == words


@given(text=st.text(st.sampled_from("I50.21 acuteheartfailure#(b)=>:.\n日"), max_size=40))
@hypothesis_settings(max_examples=100)
def test_units_cover_all_but_white_space(small, text) -> None:
    units = cut(text, Lexicon.of(small, []))
    covered = {p for unit in units for p in range(unit.start, unit.end)}
    assert [p for p, c in enumerate(text) if not c.isspace() and p not in covered] == []
    assert all(a.end <= b.start for a, b in pairwise(units))
