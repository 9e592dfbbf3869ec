import pytest

from mechdistill.data.examples import example_of
from mechdistill.data.frame import Frame
from mechdistill.data.icd_regions import REGION_SOURCES
from mechdistill.data.prompts import INSTRUCTION, demonstration
from mechdistill.data.tokenizer import decode_trace, encode_prompt, encode_trace
from mechdistill.data.units import Lexicon, cut
from mechdistill.errors import InputError
from tests.small_tokenizers import BEGIN, CHAT, byte_level


def test_a_plain_prompt_stays_as_it_is(cases, tokenizer) -> None:
    frame = Frame.of(tokenizer, "plain", 0)
    for name, split, case in cases[:5]:
        assert frame(case.prompt) == case.prompt
        assert example_of(case, name, split, frame) == example_of(case, name, split)


@pytest.mark.parametrize(("style", "demonstrations"), [("plain", 1), ("chat", 0), ("chat", 1)])
def test_spans_follow_the_note_into_its_frame(cases, pieces, style, demonstrations) -> None:
    frame = Frame.of(pieces, style, demonstrations)
    for name, split, case in cases[:10]:
        bare, framed = example_of(case, name, split), example_of(case, name, split, frame)
        assert case.prompt in framed.prompt
        assert len(framed.prompt) > len(bare.prompt)
        for before, after in zip(
            (*bare.evidence, *bare.cues), (*framed.evidence, *framed.cues), strict=True
        ):
            assert framed.prompt[slice(*after)] == bare.prompt[slice(*before)]
            assert framed.prompt.index(case.prompt) + before[0] == after[0]


def test_a_chat_states_the_form_and_opens_the_answer(pieces) -> None:
    text = Frame.of(pieces, "chat", 1)("NOTE")
    prompt, reasoning = demonstration()
    turns = [("system", INSTRUCTION), ("user", prompt), ("assistant", reasoning), ("user", "NOTE")]
    expected = "".join(f"{BEGIN}{role}\n{content}<|end|>\n" for role, content in turns)
    assert text == expected + f"{BEGIN}assistant\n"


@pytest.mark.parametrize("adds_begin", [False, True])
def test_the_first_token_stands_once(adds_begin) -> None:
    pieces = byte_level(["a note ."], adds_begin=adds_begin)
    begin = pieces.bos_token_id
    chat = encode_prompt(pieces, Frame.of(pieces, "chat", 0)("NOTE"))
    assert chat[0] == begin
    assert chat[1] != begin
    assert chat.count(begin) == 3  # system, user, assistant
    assert encode_prompt(pieces, "NOTE").count(begin) == adds_begin


def test_a_trace_follows_its_prompt_with_one_space_or_line(pieces, cases) -> None:
    reference = " ".join(cases[0][2].reference)
    for prompt, space in (("Reasoning:", " "), ("assistant\n", ""), ("", "")):
        ids = encode_trace(pieces, reference, prompt)
        assert pieces.decode(ids[:-1]) == space + reference
        assert ids[-1] == pieces.eos_token_id
        assert decode_trace(pieces, ids) == reference


def test_the_demonstration_gives_nothing_of_the_world_away(space, pieces) -> None:
    prompt, reasoning = demonstration()
    units = cut(f"{prompt} {reasoning}", Lexicon.of(space, []))
    assert not [unit for unit in units if unit.kind in ("region", "label")]
    for source in REGION_SOURCES:
        assert source.name not in prompt
        assert source.code not in prompt
        assert not [finding for finding in source.findings if finding in prompt]


def test_what_cannot_be_framed_is_refused(tokenizer, pieces) -> None:
    with pytest.raises(InputError, match="chat template"):
        Frame.of(tokenizer, "chat", 0)
    with pytest.raises(InputError, match=r"data\.prompt\.demonstrations"):
        Frame.of(tokenizer, "plain", 1)
    strict = byte_level(["a note ."])
    strict.chat_template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        + CHAT
    )
    with pytest.raises(InputError, match="no system"):
        Frame.of(strict, "chat", 0)
