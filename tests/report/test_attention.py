import pandas as pd
import pytest

from mechdistill.errors import InputError
from mechdistill.heads.places import Places
from mechdistill.report.attention import (
    attended_trace,
    kinds_of,
    note_with_attention,
    shown,
    with_anchor_mass,
)
from mechdistill.report.figures.attention import flow
from mechdistill.report.worked_example import worked_note
from mechdistill.traces.parse import Mention, Trace

TOKENS = tuple(range(10))  # 7 of the prompt, 3 of the reasoning
PLACE = Places(
    example="n0",
    tokens=TOKENS,
    prompt_length=7,
    early=(6,),
    region_events=(6,),
    refine=(),
    sinks=(0,),
    anchors=((4,),),
    anchor_mentions=(4,),
    evidence=(1, 2),
    cues=((5,),),
    gold=(),
    near=(),
)
TRACE = Trace(
    example="n0",
    split="test",
    tokens=TOKENS,
    prompt_length=7,
    text="",
    status="ok",
    answer=("A",),
    early=(6,),
    late_start=8,
    reasoning_end=10,
    events=(),
    refine=(),
    mentions=(
        Mention("region", "R", 7, 8, "early", -1, "open"),
        Mention("label", "A", 8, 9, "late", 0, "kept"),
        Mention("label", "B", 9, 10, "late", 0, "rejected"),
    ),
)


class Words:
    def decode(self, ids, **options):
        return " ".join(f"w{i}" for i in ids)


def rows(weights, example="n0", phase=1):
    return pd.DataFrame(
        {"phase": [phase], "layer": 2, "head": 3, "example": example, "weights": [weights]}
    )


WEIGHTS = [0.4, 0.1, 0.2, 0.05, 0.1, 0.05, 0.0, 0.1, 0.0, 0.0]


def test_anchor_mass_leaves_sinks_out_and_counts_the_prompt_alone():
    found = with_anchor_mass(rows(WEIGHTS), {"n0": PLACE}).iloc[0]
    assert found["anchor_mass"] == pytest.approx(0.1 + 0.2 + 0.1)
    # three anchors of six open prompt tokens, which hold 0.5 together
    assert found["anchor_mass_expected"] == pytest.approx(0.5 * 3 / 6)


def test_uniform_attention_is_at_chance():
    found = with_anchor_mass(rows([0.1] * 10), {"n0": PLACE}).iloc[0]
    assert found["anchor_mass"] == pytest.approx(found["anchor_mass_expected"])


def test_row_of_another_length_or_unknown_note_is_refused():
    with pytest.raises(InputError, match="9 keys"):
        with_anchor_mass(rows(WEIGHTS[:9]), {"n0": PLACE})
    with pytest.raises(InputError, match="n7"):
        with_anchor_mass(rows(WEIGHTS, "n7"), {"n0": PLACE})


def test_words_carry_their_roles_and_weights():
    attended = attended_trace(rows(WEIGHTS), 1, (2, 3), PLACE, TRACE, Words())
    assert [w.kind for w in attended.note] == ["", "evidence", "evidence", "", "anchor", "cue", ""]
    assert [w.kind for w in attended.reasoning] == ["anchor", "kept", "rejected"]
    assert attended.note[2].weight == 0.2
    assert attended.reasoning[0].text == "w7"


@pytest.mark.parametrize(
    ("text", "expected"), [(" note", "note"), ("\n", "↵"), (" \n\n", "↵"), (" ", "␣"), ("", "␣")]
)
def test_blank_tokens_stand_as_a_sign_that_can_be_drawn(text: str, expected: str) -> None:
    assert shown(text) == expected
    assert flow([shown(text)], width=100.0, size=6.0)[0].width > 0


def test_roles_without_mentions():
    bare = Trace(**{**TRACE.__dict__, "mentions": ()})
    assert kinds_of(PLACE, bare)[7:] == ["", "", ""]


def test_head_without_a_row_is_named():
    with pytest.raises(InputError, match=r"\(0, 0\) on n0"):
        attended_trace(rows(WEIGHTS), 1, (0, 0), PLACE, TRACE, Words())


def test_first_kept_note_stands_in_where_the_wanted_one_has_no_row():
    both = pd.concat([rows(WEIGHTS, "b"), rows(WEIGHTS, "a")])
    assert note_with_attention(both, 1, "b") == "b"
    assert note_with_attention(both, 1, "z") == "a"
    with pytest.raises(InputError, match="phase 2"):
        note_with_attention(both, 2, "b")


def test_worked_note_beyond_the_test_split_names_the_range():
    assert worked_note([TRACE], 0) == "n0"
    with pytest.raises(InputError, match="1 test notes"):
        worked_note([TRACE], 1)
