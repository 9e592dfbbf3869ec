"""Examples: a prompt, its gold and near-miss codes, the decisive words, and the reference trace."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerFast

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.labels import LabelSpace
from mechdistill.data.notes import Piece, Role
from mechdistill.data.splits import SPLITS
from mechdistill.data.world import Case, WorldSettings, draw_case
from mechdistill.errors import InputError

Span = tuple[int, int]


@dataclass(frozen=True)
class Example:
    """One note with its candidates in context.

    `near`, `regions` and `cues` run parallel to `gold` (problem order). `evidence` and `cues` are
    [start, end) character spans of `prompt`. `reference` is the templated trace: training target
    of the teacher only.
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


def spans_of(pieces: Sequence[Piece], role: Role) -> tuple[Span, ...]:
    """Character spans, in the text joined by single spaces, of the pieces with a role."""
    starts = np.cumsum([0, *(len(piece.text) + 1 for piece in pieces)]).tolist()
    return tuple(
        (start, start + len(piece.text))
        for piece, start in zip(pieces, starts, strict=False)
        if piece.role == role
    )


def example_of(case: Case, name: str, split: str) -> Example:
    """The example that a drawn case makes."""
    return Example(
        example=name,
        split=split,
        prompt=case.prompt,
        gold=tuple(problem.gold for problem in case.problems),
        near=tuple(problem.near for problem in case.problems),
        regions=tuple(problem.region for problem in case.problems),
        candidates=tuple(code for pair in case.pairs for code in pair),
        evidence=spans_of(case.pieces, Role.EVIDENCE),
        cues=spans_of(case.pieces, Role.CUE),
        reference=" ".join(case.reference),
    )


def draw_cases(
    space: LabelSpace, settings: WorldSettings, counts: Mapping[str, int], seed: int
) -> list[tuple[str, str, Case]]:
    """(name, split, case) of every split: no prompt twice, no gold combination in two splits.

    The cases of a split depend on `seed` and their number alone, not on other splits.
    """
    unknown = set(counts) - set(SPLITS)
    if unknown:
        raise InputError(f"unknown splits {sorted(unknown)}", f"splits are {', '.join(SPLITS)}")
    drawn = []
    for split in SPLITS:
        rng = np.random.default_rng([seed, 2, SPLITS.index(split)])
        seen: set[str] = set()
        for _ in range(counts.get(split, 0)):
            case = draw_case(space, settings, split, rng)
            while case.prompt in seen:
                case = draw_case(space, settings, split, rng)
            drawn.append((f"{split}-{len(seen):05d}", split, case))
            seen.add(case.prompt)
    return drawn


def check_tokens(cases: Sequence[Case], tokenizer: PreTrainedTokenizerFast) -> None:
    """Make sure that each piece of each case is one token.

    Raises:
        InputError: the tokenizer belongs to another label space.
    """
    for case in cases:
        for words in ([piece.text for piece in case.pieces], list(case.reference)):
            ids = tokenizer(" ".join(words), add_special_tokens=False)["input_ids"]
            if tokenizer.convert_ids_to_tokens(ids) != words:
                raise InputError(
                    f"the tokenizer splits or does not know words of {' '.join(words)[:80]!r}",
                    "make label_space.json and tokenizer.json again in one run",
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
    return Example(**{key: _plain(value) for key, value in row.items()})


def _plain(value: Any) -> Any:
    """Arrays back to tuples, as deep as they go."""
    if isinstance(value, np.ndarray | list | tuple):
        return tuple(_plain(item) for item in value)
    return value.item() if isinstance(value, np.generic) else value
