"""Twins of a prompt: the same note with findings and cues neutralised, a cue flipped, or a sham.

| twin | what is replaced | by |
|---|---|---|
| K1 | every finding of a true region and every cue | neutral phrases |
| K2 | every cue | the cue of the near-miss |
| K0 | as many tokens as K1 replaces, as far as there are, none decisive | others of their kind |

A replacement has as many tokens as what it replaces, so a twin and its original align position by
position. With the world's own tokenizer every phrase is one token. With another one phrases of
equal length are drawn; where the cue of the near-miss is shorter than the cue, neutral words fill
it up. An example whose phrases find none of their length has no twin of that kind.
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
from mechdistill.data.token_spans import covering, encode_continuation
from mechdistill.data.tokenizer import encode_prompt, prompt_spans
from mechdistill.data.units import Lexicon, cut, lexicon
from mechdistill.data.wording import NEUTRAL_WORDS, Wording
from mechdistill.errors import InputError

TWINS = ("K0", "K1", "K2")
_MOST_FILLINGS = 3
"""A phrase as it is, with one and with two groups of neutral words."""


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
    """The twins K0, K1 and K2 that an example has, in this order.

    The choice of words depends on `seed`, the example's name and the tokenizer.

    Raises:
        InputError: a cue of the label space is no word of the tokenizer.
    """
    rng = np.random.default_rng([seed, 3, *example.example.encode()])
    prompt, wording = _Prompt(example, tokenizer), space.wording
    near = [space.label(code).cue for code in example.near]
    prompt.require_known(near)
    neutral = {span: prompt.neutral(span, wording.fillers, rng) for span in example.evidence}
    neutral |= {span: prompt.neutral(span, wording.neutral_cues, rng) for span in example.cues}
    replacements: dict[str, dict[Span, str | None]] = {
        "K0": _sham(prompt, sum(len(prompt.tokens_of(span)) for span in neutral), space, rng),
        "K1": neutral,
        "K2": {
            span: prompt.filled_up(span, cue, rng)
            for span, cue in zip(example.cues, near, strict=True)
        },
    }
    twins = [prompt.twin(name, replacements[name]) for name in TWINS]
    return [twin for twin in twins if twin is not None]


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


class _Prompt:
    """An example's prompt, and how many tokens phrases have in it."""

    def __init__(self, example: Example, tokenizer: PreTrainedTokenizerFast) -> None:
        self.example = example
        self._tokenizer = tokenizer
        self._ids, self._spans = prompt_spans(tokenizer, example.prompt)

    def note(self, wording: Wording) -> tuple[str, int]:
        """The note, without what the frame puts before it, and where it begins."""
        start = max(0, self.example.prompt.rfind(wording.start))
        return self.example.prompt[start:], start

    def lexicon(self, space: LabelSpace) -> Lexicon:
        """What the note is made of."""
        return lexicon(self._tokenizer, space)

    def tokens_of(self, span: Span) -> tuple[int, ...]:
        """Positions of the tokens of a span and of the space before it."""
        start, end = span
        return covering(self._spans, (start - (self.example.prompt[start - 1 : start] == " "), end))

    def require_known(self, cues: Iterable[str]) -> None:
        unknown = [cue for cue in cues if self._tokenizer.unk_token_id in self._encode(cue)]
        if unknown:
            raise InputError(
                f"twin K2 of example {self.example.example} does not align with its original: "
                f"the tokenizer does not know {unknown[0]!r}",
                "make label_space.json, tokenizer.json and examples.parquet again in one run",
            )

    def neutral(self, span: Span, phrases: Sequence[str], rng: np.random.Generator) -> str | None:
        """A neutral phrase of the span's length: one of the phrases, else one with more words."""
        return self._fill([*phrases], span, rng) or self._fill(list(NEUTRAL_WORDS), span, rng)

    def filled_up(self, span: Span, cue: str, rng: np.random.Generator) -> str | None:
        """The cue, with neutral words behind it where it is shorter than the span."""
        return self._fill([cue], span, rng)

    def _fill(self, phrases: list[str], span: Span, rng: np.random.Generator) -> str | None:
        """One of the phrases, with as few neutral words behind it as make the span's length."""
        for _ in range(_MOST_FILLINGS):
            if fitting := self.fitting(span, phrases):
                return _pick(fitting, rng) if len(fitting) > 1 else fitting[0]
            phrases = [f"{phrase} {more}" for phrase in phrases for more in NEUTRAL_WORDS]
        return None

    def fitting(self, span: Span, phrases: Iterable[str]) -> list[str]:
        """The phrases that have as many tokens as the span."""
        length, unknown = len(self.tokens_of(span)), self._tokenizer.unk_token_id
        encoded = {phrase: self._encode(phrase) for phrase in phrases}
        return [p for p, ids in encoded.items() if len(ids) == length and unknown not in ids]

    def twin(self, name: str, replacements: Mapping[Span, str | None]) -> Twin | None:
        """The twin; None where a replacement is missing, or where another token would change."""
        found = {span: word for span, word in replacements.items() if word is not None}
        text, changed = replace_spans(self.example.prompt, found)
        after = encode_prompt(self._tokenizer, text)
        free = {position for span in found for position in self.tokens_of(span)}
        if len(found) < len(replacements) or len(after) != len(self._ids):
            return None
        different = {p for p, (a, b) in enumerate(zip(self._ids, after, strict=True)) if a != b}
        if not different or not different <= free:
            return None
        return Twin(self.example.example, name, text, changed, len(different))

    def _encode(self, phrase: str) -> tuple[int, ...]:
        """Tokens of a phrase behind a space."""
        return encode_continuation(self._tokenizer, f" {phrase}")


def _sham(
    prompt: _Prompt, count: int, space: LabelSpace, rng: np.random.Generator
) -> dict[Span, str | None]:
    """Indifferent words of the note, up to `count` tokens, each with another of its kind."""
    kinds = {word: kind for kind in space.wording.indifferent for word in kind}
    text, start = prompt.note(space.wording)
    others: dict[Span, list[str]] = {}
    for unit in cut(text, prompt.lexicon(space)):
        if unit.key in kinds:
            span = start + unit.start, start + unit.end
            same_kind = [word for word in kinds[unit.key] if word != unit.key]
            if fitting := prompt.fitting(span, same_kind):
                others[span] = fitting
    usable, picked, tokens = list(others), [], 0
    for index in rng.permutation(len(usable)).tolist():
        if tokens < count:
            picked.append(index)
            tokens += len(prompt.tokens_of(usable[index]))
    return {usable[index]: _pick(others[usable[index]], rng) for index in sorted(picked)}


def _pick(words: Sequence[str], rng: np.random.Generator) -> str:
    return words[int(rng.integers(len(words)))]
