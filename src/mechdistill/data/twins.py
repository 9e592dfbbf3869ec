"""Twins of a prompt: the same note with findings and cues neutralised, a cue flipped, or a sham.

| twin | what is replaced | by |
|---|---|---|
| K1 | every finding of a true region and every cue | neutral phrases |
| K2 | every cue | the cue of the near-miss |
| K0 | as many words as K1 replaces, as far as there are, none decisive | others of their kind |

A replacement is one token for one token, so a twin and its original align position by position.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerFast

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.examples import Example, Span
from mechdistill.data.labels import LabelSpace
from mechdistill.data.notes import CAME, FILLERS, FOUND, NEUTRAL_CUES, SOURCES
from mechdistill.errors import InputError

TWINS = ("K0", "K1", "K2")
_INDIFFERENT = (FOUND, CAME, SOURCES, FILLERS, NEUTRAL_CUES)


@dataclass(frozen=True)
class Twin:
    """A changed prompt. `changed` are [start, end) character spans of the twin's own prompt."""

    example: str
    twin: str
    prompt: str
    changed: tuple[Span, ...]
    n_tokens_changed: int


def twins_of(
    example: Example, space: LabelSpace, tokenizer: PreTrainedTokenizerFast, seed: int
) -> list[Twin]:
    """K0, K1 and K2 of an example; the choice of words depends on `seed` and the example's name.

    Raises:
        InputError: a twin has another number of tokens than its original, or a word that the
            tokenizer does not know.
    """
    rng = np.random.default_rng([seed, 3, *example.example.encode()])
    near_cues = [space.label(code).cue for code in example.near]
    neutral: dict[Span, str] = {span: _pick(FILLERS, rng) for span in example.evidence}
    neutral |= {span: _pick(NEUTRAL_CUES, rng) for span in example.cues}
    replacements = {
        "K0": _sham(example, tokenizer, len(neutral), rng),
        "K1": neutral,
        "K2": dict(zip(example.cues, near_cues, strict=True)),
    }
    twins = []
    for name in TWINS:
        prompt, changed = replace_spans(example.prompt, replacements[name])
        _check_alignment(example, name, prompt, len(changed), tokenizer)
        twins.append(Twin(example.example, name, prompt, changed, len(changed)))
    return twins


def replace_spans(text: str, replacements: Mapping[Span, str]) -> tuple[str, tuple[Span, ...]]:
    """Text with the spans replaced, and where the new words stand in it.

    >>> replace_spans("no acute pain", {(3, 8): "chronic"})
    ('no chronic pain', ((3, 10),))
    """
    parts, changed, done, length = [], [], 0, 0
    for (start, end), word in sorted(replacements.items()):
        parts += [text[done:start], word]
        length += start - done + len(word)
        changed.append((length - len(word), length))
        done = end
    return "".join([*parts, text[done:]]), tuple(changed)


def write_twins(path: str | Path, twins: Iterable[Twin]) -> None:
    """Write twins as a Parquet table, one row each."""
    write_table(path, pd.DataFrame([asdict(twin) for twin in twins]))


def read_twins(path: str | Path) -> dict[tuple[str, str], Twin]:
    """Twins by (example, twin name); InputError if the file is missing or damaged."""
    frame = read_table(path, [field.name for field in fields(Twin)])
    twins = {}
    for row in frame.to_dict("records"):
        changed = tuple((int(start), int(end)) for start, end in row["changed"])
        twin = Twin(row["example"], row["twin"], row["prompt"], changed, row["n_tokens_changed"])
        twins[twin.example, twin.twin] = twin
    return twins


def _sham(
    example: Example, tokenizer: PreTrainedTokenizerFast, count: int, rng: np.random.Generator
) -> dict[Span, str]:
    """Up to `count` indifferent words of the prompt, each with another of its kind."""
    encoded = tokenizer(example.prompt, add_special_tokens=False, return_offsets_mapping=True)
    spans = [(int(start), int(end)) for start, end in encoded["offset_mapping"]]
    kinds = {word: kind for kind in _INDIFFERENT for word in kind}
    found = {span: example.prompt[slice(*span)] for span in spans}
    usable = [span for span, word in found.items() if word in kinds]
    picked = sorted(rng.permutation(len(usable))[:count].tolist())
    return {
        usable[index]: _pick(
            [w for w in kinds[found[usable[index]]] if w != found[usable[index]]], rng
        )
        for index in picked
    }


def _check_alignment(
    example: Example, twin: str, prompt: str, changed: int, tokenizer: PreTrainedTokenizerFast
) -> None:
    before = tokenizer(example.prompt)["input_ids"]
    after = tokenizer(prompt)["input_ids"]
    different = sum(a != b for a, b in zip(before, after, strict=False))
    if len(before) != len(after) or different != changed or tokenizer.unk_token_id in after:
        raise InputError(
            f"twin {twin} of example {example.example} does not align with its original: "
            f"{len(before)} and {len(after)} tokens, {different} different, {changed} replaced",
            "make label_space.json, tokenizer.json and examples.parquet again in one run",
        )


def _pick(words: Sequence[str], rng: np.random.Generator) -> str:
    return words[int(rng.integers(len(words)))]
