"""Implicit positions: every position of a trace moves, and a model says itself what it reads."""

from dataclasses import replace
from types import SimpleNamespace

from mechdistill.traces.implicit import as_read_by, implicit_tokens, inserted
from mechdistill.traces.parse import Event, Mention, RefinePosition, Trace


def trace() -> Trace:
    return Trace(
        example="test-0",
        split="test",
        tokens=(1, 10, 11, 20, 21, 22, 2),
        prompt_length=3,
        text="",
        status="ok",
        answer=("A",),
        early=(2, 3),
        late_start=4,
        reasoning_end=5,
        mentions=(Mention("label", "A", 4, 5, "late", 0, "kept"),),
        events=(Event("within", "reasoning", 4, 22, (23,), "A", ("B",), 0),),
        refine=(RefinePosition(4, 22, 23, 0, (3,), (4,)),),
    )


def test_every_position_goes_on_pointing_at_its_token() -> None:
    before, after = trace(), inserted(trace(), (3, 3))
    assert after.tokens == (1, 10, 11, 3, 3, 20, 21, 22, 2)
    assert after.prompt_length == 5
    for name in ("late_start", "reasoning_end"):
        assert before.tokens[getattr(before, name)] == after.tokens[getattr(after, name)]
    assert [after.tokens[q + 1] for q in after.early] == [20, 21]
    (mention,), (event,), (at,) = after.mentions, after.events, after.refine
    assert after.tokens[mention.start : mention.end] == (21,)
    assert after.tokens[event.query + 1] == after.tokens[at.query + 1] == 22
    assert (at.shortlist, at.near_miss) == ((5,), (6,))


def test_a_reasoning_without_a_clause_keeps_saying_so() -> None:
    assert inserted(replace(trace(), late_start=-1), (3,)).late_start == -1


def test_a_model_without_implicit_positions_reads_the_trace_itself() -> None:
    model = SimpleNamespace(config=SimpleNamespace())
    assert implicit_tokens(model) == ()
    assert as_read_by(model, [trace()]) == [trace()]


def test_a_model_with_implicit_positions_reads_them() -> None:
    model = SimpleNamespace(config=SimpleNamespace(implicit_prompt=[3]))
    assert as_read_by(model, [trace()])[0].tokens[3] == 3
