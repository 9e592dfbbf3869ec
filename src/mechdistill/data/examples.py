"""Examples: a prompt, its gold and near-miss codes, the decisive words, and the reference trace."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerFast

from mechdistill.artifacts import plain, read_table, write_table
from mechdistill.data.frame import Frame
from mechdistill.data.labels import LabelSpace
from mechdistill.data.notes import Piece, Role
from mechdistill.data.splits import SPLITS, TRAINING
from mechdistill.data.tokenizer import decode_trace, is_word_level
from mechdistill.data.world import Case, WorldSettings, documents_of, draw_case
from mechdistill.errors import InputError

Span = tuple[int, int]

NO_FRAME = Frame()


@dataclass(frozen=True)
class Example:
    """One note with its candidates in context.

    `prompt` is all that a model reads before it writes, a demonstration and a chat template
    included. `near`, `regions` and `cues` run parallel to `gold` (problem order). `evidence` and
    `cues` are [start, end) character spans of `prompt`. `reference` is the templated trace:
    training target of the teacher only. `unasked` codes of the document are not asked for and yet
    no misses: where a list holds them, they count neither as true nor as false.
    """

    example: str
    split: str
    prompt: str
    gold: tuple[str, ...]
    near: tuple[str, ...]
    regions: tuple[str, ...]
    candidates: tuple[str, ...]
    evidence: tuple[Span, ...]
    cues: tuple[Span, ...]
    reference: str
    unasked: tuple[str, ...] = ()

    def counted(self, codes: Iterable[str]) -> tuple[str, ...]:
        """The codes without those that are listed and unasked."""
        silent = set(self.unasked).intersection(self.candidates)
        return tuple(code for code in codes if code not in silent)


def spans_of(pieces: Sequence[Piece], role: Role, offset: int = 0) -> tuple[Span, ...]:
    """Character spans of the pieces with a role in their text, joined by single spaces.

    Args:
        offset: characters before the text.
    """
    starts = np.cumsum([offset, *(len(piece.text) + 1 for piece in pieces)]).tolist()
    return tuple(
        (start, start + len(piece.text))
        for piece, start in zip(pieces, starts, strict=False)
        if piece.role == role
    )


def example_of(case: Case, name: str, split: str, frame: Frame = NO_FRAME) -> Example:
    """The example that a drawn case makes."""
    offset = len(frame.before)
    return Example(
        example=name,
        split=split,
        prompt=frame(case.prompt),
        gold=tuple(problem.gold for problem in case.problems),
        near=tuple(problem.near for problem in case.problems),
        regions=tuple(problem.region for problem in case.problems),
        candidates=tuple(code for pair in case.pairs for code in pair),
        evidence=spans_of(case.pieces, Role.EVIDENCE, offset),
        cues=spans_of(case.pieces, Role.CUE, offset),
        reference=" ".join(case.reference),
        unasked=case.unasked,
    )


def draw_cases(
    space: LabelSpace, settings: WorldSettings, counts: Mapping[str, int], seed: int
) -> list[tuple[str, str, Case]]:
    """(name, split, case) of every split: no prompt twice, no gold combination in two splits.

    Where there are documents, it is they that are in one split; outside training each makes one
    note, so that notes are independent. The cases of a split depend on `seed` and their number
    alone, not on other splits.
    """
    unknown = set(counts) - set(SPLITS)
    if unknown:
        raise InputError(f"unknown splits {sorted(unknown)}", f"splits are {', '.join(SPLITS)}")
    drawn = []
    for split in SPLITS:
        rng = np.random.default_rng([seed, 2, SPLITS.index(split)])
        seen: set[str] = set()
        used: set[str] = set()
        if split != TRAINING:
            _require_documents(space, settings, split, counts.get(split, 0))
        for _ in range(counts.get(split, 0)):
            case = draw_case(space, settings, split, rng)
            while case.prompt in seen or case.document in used:
                case = draw_case(space, settings, split, rng)
            drawn.append((f"{split}-{len(seen):05d}", split, case))
            seen.add(case.prompt)
            if case.document and split != TRAINING:
                used.add(case.document)
    return drawn


def _require_documents(space: LabelSpace, settings: WorldSettings, split: str, count: int) -> None:
    if not space.documents:
        return
    there = len(documents_of(space, settings, split).choices)
    if count > there:
        raise InputError(
            f"data.splits.{split} is {count}, and {there} documents of that split make notes",
            f"set data.splits.{split} to {there} at most, or raise data.world.regions or "
            "labels_per_region",
        )


def check_tokens(cases: Sequence[Case], tokenizer: PreTrainedTokenizerFast) -> None:
    """Make sure that a tokenizer can write each case.

    With whole words as tokens each piece of a case must be one token; any other tokenizer must give
    the text back as it was.

    Raises:
        InputError: it does not know some words, belongs to another label space, or changes texts.
    """
    whole_words = is_word_level(tokenizer)
    for case in cases:
        for words in ([piece.text for piece in case.pieces], list(case.reference)):
            text = " ".join(words)
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            if whole_words and tokenizer.convert_ids_to_tokens(ids) != words:
                raise InputError(
                    f"the tokenizer splits or does not know words of {text[:80]!r}",
                    "make label_space.json and tokenizer.json again in one run",
                )
            if tokenizer.unk_token_id in ids or decode_trace(tokenizer, ids) != text:
                raise InputError(
                    f"the tokenizer does not give back {text[:80]!r} as it was",
                    "take a model whose tokenizer keeps letters and spaces as they are",
                )


def write_examples(path: str | Path, examples: Iterable[Example]) -> None:
    """Write examples as a Parquet table, one row each."""
    write_table(path, pd.DataFrame([asdict(example) for example in examples]))


def read_examples(path: str | Path, split: str | None = None) -> list[Example]:
    """Read examples, of one split if it is named.

    Raises:
        InputError: the file is missing or damaged, a column is missing, or no row has the split.
    """
    frame = read_table(path, [field.name for field in fields(Example)])
    if split is not None:
        frame = frame[frame["split"] == split]
        if frame.empty:
            raise InputError(
                f"{path} has no example of split {split!r}", "give data.splits a number above 0"
            )
    return [_example(row) for row in frame.to_dict("records")]


def _example(row: Mapping[Any, Any]) -> Example:
    return Example(**{key: plain(value) for key, value in row.items()})
