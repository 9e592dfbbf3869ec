"""The teacher's traces for a student of another tokenizer, and where the two can be compared.

The text is the same, prompt and trace, and so is what it says: the student's tokens are parsed as
any trace is. Teacher and student are compared

- on attention rows and coarse scalars at early positions that see the same text in both
  (`mechdistill.data.alignment`), the rows over groups of tokens;
- on refinement scalars at the same decisions. A decision falls where the tokens of its target and
  its foil part, and one token of one model may be several of the other: the position that sees the
  same text as the teacher's would often have no margin at all. Decisions are the same if they
  belong to one clause and the tokens that decide share text.

What has no counterpart is left out, and counted (`shared_table`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from mechdistill.data.alignment import Alignment, align
from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.token_ends import TokenEnds, ends_in_text, ends_of_ids, joined
from mechdistill.data.tokenizer import encode_prompt, encode_trace, spells_its_begin
from mechdistill.distil.sequences import TrainingSequence, decidable, usable, whole_trace
from mechdistill.errors import InputError
from mechdistill.traces.parse import RefinePosition, Trace, parse_trace

if TYPE_CHECKING:
    from mechdistill.traces.decision_events import DecisionEvent


@dataclass(frozen=True)
class Retokenised:
    """A trace of the teacher in its own and in the student's tokens.

    `teacher_ends` and `student_ends` are of prompt and trace; `alignment` leads from the teacher's
    tokens to the student's.
    """

    teacher: Trace
    student: Trace
    teacher_ends: TokenEnds
    student_ends: TokenEnds
    alignment: Alignment

    def early(self) -> list[tuple[int, int]]:
        """Early positions that see the same text: the teacher's and the student's."""
        queries = self.alignment.queries
        return [(query, queries[query]) for query in self.teacher.early if query in queries]

    def refine(self) -> list[tuple[RefinePosition, RefinePosition]]:
        """The same decisions: the teacher's and the student's."""
        others = list(decidable(self.student.refine))
        pairs = []
        for at in decidable(self.teacher.refine):
            same = next((other for other in others if self._is_same(at, other)), None)
            if same:
                others.remove(same)
                pairs.append((at, same))
        return pairs

    def _is_same(self, first: RefinePosition, second: RefinePosition) -> bool:
        return first.clause == second.clause and self._share_text(first.query, second.query)

    def same_decisions(
        self, teacher: Sequence[DecisionEvent], student: Sequence[DecisionEvent]
    ) -> list[tuple[DecisionEvent, DecisionEvent]]:
        """Decision events of the teacher's trace with the student's that decide the same.

        Same kind, segment, form, pick and count, at tokens that share text: a name has its events
        where its tokens part from those of the alternatives, which differs between tokenizers.
        """
        others = list(student)
        pairs = []
        for event in teacher:
            same = next((other for other in others if self._decides_as(event, other)), None)
            if same:
                others.remove(same)
                pairs.append((event, same))
        return pairs

    def _decides_as(self, first: DecisionEvent, second: DecisionEvent) -> bool:
        return _pick(first) == _pick(second) and self._share_text(first.query, second.query)

    def _share_text(self, query: int, other: int) -> bool:
        """Whether what the teacher predicts at `query` and the student at `other` overlap."""
        start, end = self.teacher_ends.spelled(query + 1)
        begin, stop = self.student_ends.spelled(other + 1)
        return start < stop and begin < end

    def teacher_sequence(self) -> TrainingSequence:
        """What the teacher is read at, its rows over groups."""
        return replace(
            whole_trace(self.teacher),
            early=tuple(query for query, _ in self.early()),
            refine=tuple(at for at, _ in self.refine()),
            groups=self.alignment.first,
        )

    def student_trace(self) -> Trace:
        """What the student trains on: of the positions, those that the teacher is read at."""
        return replace(
            self.student,
            status=self.student.status if usable(self.teacher) else self.teacher.status,
            early=tuple(position for _, position in self.early()),
            refine=tuple(at for _, at in self.refine()),
        )


def retokenise(
    trace: Trace, example: Example, teacher_tokenizer: Any, tokenizer: Any, space: LabelSpace
) -> Retokenised:
    """A trace in a student's tokens.

    Its early window is the text of the teacher's.

    Args:
        trace: of the teacher.
        example: the trace's.
        teacher_tokenizer: that wrote the trace.
        tokenizer: the student's.
        space: the label space.

    Raises:
        InputError: the trace is of another example, or a tokenizer does not tell where its tokens
            stand.
    """
    prompt, written = trace.tokens[: trace.prompt_length], trace.tokens[trace.prompt_length :]
    if tuple(encode_prompt(teacher_tokenizer, example.prompt)) != prompt:
        raise InputError(
            f"the trace of example {trace.example} does not begin with that example's prompt",
            "examples, tokenizer and traces are of different runs: make them again together",
        )
    text, ends = ends_of_ids(teacher_tokenizer, written)
    teacher = joined([_of_prompt(teacher_tokenizer, example), _behind(example.prompt), ends])
    ids = encode_trace(tokenizer, text, example.prompt)
    between = " " * _behind(example.prompt).size
    own = ends_in_text(tokenizer, between + text, add_special_tokens=False).filled()
    end = TokenEnds(0, (0,), (True,))
    student = joined([_of_prompt(tokenizer, example), own, end])
    if written[-1:] != (teacher_tokenizer.eos_token_id,):  # cut off: the student's ends openly too
        ids, student = ids[:-1], student.without_last()
    width = 0
    if trace.early:
        stop = teacher.spelled(trace.early[-1] + 1)[1]
        begin = len(student) - len(ids)
        width = sum(student.spelled(token)[1] <= stop for token in range(begin, len(student)))
    return Retokenised(
        trace,
        parse_trace(example, ids, tokenizer, space, width),
        teacher,
        student,
        align(teacher, student, _sinks(teacher), _sinks(student)),
    )


def retokenise_all(
    traces: Sequence[Trace],
    examples: Iterable[Example],
    teacher_tokenizer: Any,
    tokenizer: Any,
    space: LabelSpace,
) -> list[Retokenised]:
    """Each trace in a student's tokens; arguments and errors as `retokenise`."""
    known = {example.example: example for example in examples}
    missing = [trace.example for trace in traces if trace.example not in known]
    if missing:
        raise InputError(
            f"a trace belongs to example {missing[0]}, which the examples do not hold",
            "make examples and traces again from the same study",
        )
    return [
        retokenise(trace, known[trace.example], teacher_tokenizer, tokenizer, space)
        for trace in traces
    ]


def require_room(pairs: Iterable[Retokenised], max_new_tokens: int) -> None:
    """Students must be able to write as much as the teacher did.

    Raises:
        InputError: a finished trace has more tokens of the student than it may write.
    """
    for pair in pairs:
        own = len(pair.student.tokens) - pair.student.prompt_length
        if usable(pair.teacher) and own > max_new_tokens:
            raise InputError(
                f"trace {pair.student.example} has {own} tokens of the students' tokenizer, and "
                f"traces.max_new_tokens is {max_new_tokens}",
                "raise traces.max_new_tokens, or distil.student_tokenizer.vocabulary",
            )


def shared_table(pairs: Sequence[Retokenised]) -> pd.DataFrame:
    """One row a training trace, as `describe_traces`, with what is lost between the tokenizers.

    `early` and `refine` count positions that are compared; `early_lost` and `refine_lost` those of
    the teacher beside them; `refine_elsewhere` decisions among the compared ones that fall behind
    different text; `groups` keys of the rows that are compared.
    """
    rows = []
    for pair in pairs:
        trace, early, refine = pair.teacher, pair.early(), pair.refine()
        queries = pair.alignment.queries
        rows.append(
            {
                "example": trace.example,
                "status": trace.status,
                "used": usable(pair.student_trace()),
                "tokens": len(pair.student.tokens) - pair.student.prompt_length,
                "early": len(early),
                "refine": len(refine),
                "refine_left_out": len(trace.refine) - len(decidable(trace.refine)),
                "early_lost": len(trace.early) - len(early),
                "refine_lost": len(decidable(trace.refine)) - len(refine),
                "refine_elsewhere": sum(queries.get(a.query) != b.query for a, b in refine),
                "groups": pair.alignment.count,
            }
        )
    return pd.DataFrame(rows)


def _of_prompt(tokenizer: Any, example: Example) -> TokenEnds:
    begins = spells_its_begin(tokenizer, example.prompt)
    return ends_in_text(tokenizer, example.prompt, add_special_tokens=not begins).filled()


def _behind(prompt: str) -> TokenEnds:
    """The space between prompt and trace, where `encode_trace` puts one; it has no token."""
    return TokenEnds(int(bool(prompt) and not prompt[-1].isspace()), (), ())


def _pick(event: DecisionEvent) -> tuple[str, str, str, str, int]:
    return event.kind, event.segment, event.form, event.code, event.repeat


def _sinks(ends: TokenEnds) -> list[bool]:
    """As everywhere else: position 0 and special tokens."""
    return [index == 0 or special for index, special in enumerate(ends.special)]
