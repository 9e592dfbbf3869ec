"""What can be attended to at a decision: every token that comes before it belongs to one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.prompts import CANDIDATES
from mechdistill.data.token_spans import covering
from mechdistill.data.tokenizer import prompt_spans
from mechdistill.data.units import cut, lexicon

PLACES = (
    *("chosen_region", "other_regions", "evidence", "other_evidence", "note", "near_miss"),
    *("sinks", "prompt", "reasoning"),
)
"""Lines of the list of the region that is chosen and of others; findings of the region that is
chosen and of others; what else stands before the list (the note, an instruction, a demonstration);
earlier mentions of a near-miss; position 0 and special tokens; the rest of the prompt; of the
trace."""
_NUMBER = {place: number for number, place in enumerate(PLACES)}


class PromptPlaces:
    """Places in the prompt of one example, whichever region is chosen.

    Args:
        length: tokens of the prompt.
        lines: region -> tokens of its candidates' names in the list, and of its own name there.
        evidence: region -> tokens of the findings that support its gold label.
        note: all tokens before the list.
        sinks: position 0 and special tokens.
    """

    def __init__(
        self,
        length: int,
        lines: Mapping[str, Iterable[int]],
        evidence: Mapping[str, Iterable[int]],
        note: Iterable[int],
        sinks: Iterable[int],
    ) -> None:
        self.length = length
        self._lines, self._evidence = lines, evidence
        self._note, self._sinks = list(note), list(sinks)

    @classmethod
    def of(cls, example: Example, space: LabelSpace, tokenizer: Any) -> PromptPlaces:
        """Found in the text; a list is what follows the last heading of candidates.

        A finding supports the regions of gold labels that have it in the label space, or, where
        none has it as it stands in the note, those that have it as a word of one.
        """
        ids, spans = prompt_spans(tokenizer, example.prompt)
        start = example.prompt.rindex(CANDIDATES)
        lines: dict[str, set[int]] = {}
        known = set(example.candidates)
        for unit in cut(example.prompt[start:], lexicon(tokenizer, space)):
            if unit.kind == "region" or (unit.kind == "label" and unit.key in known):
                region = unit.key if unit.kind == "region" else space.label(unit.key).region
                tokens = covering(spans, (start + unit.start, start + unit.end))
                lines.setdefault(region, set()).update(tokens)
        evidence: dict[str, set[int]] = {}
        for span in example.evidence:
            for region in supported(example.prompt[slice(*span)], example.regions, space):
                evidence.setdefault(region, set()).update(covering(spans, span))
        special = set(tokenizer.all_special_ids)
        return cls(
            len(ids),
            lines,
            evidence,
            covering(spans, (0, start)),
            [p for p, token in enumerate(ids) if p == 0 or token in special],
        )

    def at(self, query: int, region: str, near_miss: Sequence[int]) -> NDArray[np.int64]:
        """Number in PLACES of each key up to the query position, itself included: [query + 1].

        Args:
            region: that is chosen there.
            near_miss: tokens of its earlier mentions; empty unless a departure is read.
        """
        found = np.full(max(query + 1, self.length), _NUMBER["reasoning"])
        found[: self.length] = _NUMBER["prompt"]
        for place, tokens in (  # later ones win
            ("note", self._note),
            ("other_evidence", _all(self._evidence)),
            ("evidence", self._evidence.get(region, ())),
            ("other_regions", _all(self._lines)),
            ("chosen_region", self._lines.get(region, ())),
            ("near_miss", [p for p in near_miss if p <= query]),
            ("sinks", self._sinks),
        ):
            found[list(tokens)] = _NUMBER[place]
        return found[: query + 1]


def supported(said: str, regions: Iterable[str], space: LabelSpace) -> set[str]:
    """Those of the regions that have a finding, as it stands in a note."""
    wanted = _plain(said)
    findings = {key: [_plain(each) for each in space.region(key).evidence] for key in regions}
    whole = {key for key, own in findings.items() if wanted in own}
    return whole or {
        key for key, own in findings.items() if any(wanted in each.split() for each in own)
    }


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _all(places: Mapping[str, Iterable[int]]) -> list[int]:
    return [token for tokens in places.values() for token in tokens]
