"""Examples made of documents that a user brings: the text, a candidate list, what is true of it.

A code is asked for where the text says its cue, in whole or by a word of it; the document's other
true codes stay out of the candidates, as filter rows do. Near-misses and decoys are drawn as for
other documents (`documents`).
"""

import hashlib
import heapq
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mechdistill.data.documents import Choices, Pool, choices_of
from mechdistill.data.examples import Example, Span
from mechdistill.data.frame import Frame
from mechdistill.data.labels import Document, LabelSpace
from mechdistill.data.notes import Problem
from mechdistill.data.prompts import REASONING, candidate_pieces, reference_words
from mechdistill.data.sources.choosing import SMALL, split_of_document
from mechdistill.data.sources.collection import SourceDocument
from mechdistill.data.splits import SPLITS
from mechdistill.data.world import UNSEEN_SPLIT, WorldSettings
from mechdistill.errors import InputError

_LONG_WORD = re.compile(r"[a-z0-9][a-z0-9'/-]{3,}")


@dataclass(frozen=True)
class Told:
    """A document, cut to a number of words, what can be asked of it, and where it says so."""

    name: str
    text: str
    choices: Choices


def documents_to_ask(
    documents: Iterable[SourceDocument],
    space: LabelSpace,
    settings: WorldSettings,
    counts: Mapping[str, int],
    most_words: int,
    with_validation: bool,
) -> dict[str, list[Told]]:
    """By split, as many documents as are wanted, drawn by a hash; read once, few kept in memory.

    Raises:
        InputError: a split has fewer documents that say what is true of them.
    """
    kept: dict[str, list[tuple[int, str, Told]]] = {split: [] for split in SPLITS}
    for document in documents:
        split = split_of_document(document, settings.seed, with_validation)
        heap, wanted = kept[split], counts.get(split, 0)
        rank = -_hash(settings.seed, document.document)  # a heap's first entry is its least
        if len(heap) < wanted or (heap and rank > heap[0][0]):
            told = _told(document, space, most_words, split == UNSEEN_SPLIT)
            enough = len(told.choices.gold) >= settings.problems_min
            if enough and len(told.choices.decoys) >= settings.groups_in_context:
                push = heapq.heappush if len(heap) < wanted else heapq.heappushpop
                push(heap, (rank, document.document, told))
    for split, heap in kept.items():
        if len(heap) < counts.get(split, 0):
            raise InputError(
                f"data.splits.{split} is {counts[split]}, and {len(heap)} documents of that split "
                "say what is true of them",
                f"set data.splits.{split} to {len(heap)} at most, or raise data.world.regions, "
                "labels_per_region or data.source.most_words",
            )
    return {split: [told for _, _, told in sorted(heap)[::-1]] for split, heap in kept.items()}


def ask(
    told: Mapping[str, list[Told]],
    space: LabelSpace,
    settings: WorldSettings,
    frame: Frame,
) -> Iterator[Example]:
    """One example a document, in the order of splits."""
    for split in SPLITS:
        pool = Pool(space, tuple(one.choices for one in told[split]))
        rng = np.random.default_rng([settings.seed, 2, SPLITS.index(split)])
        for number, one in enumerate(told[split]):
            pairs, gold = pool.draw_groups(
                one.choices, settings.problems_max, settings.groups_in_context, rng
            )
            problems = [
                _problem(space, code, pair[1 - pair.index(code)])
                for code, pair in zip(gold, pairs, strict=False)
            ]
            shown = [pairs[index] for index in rng.permutation(len(pairs))]
            pieces = [piece.text for piece in candidate_pieces(space, shown)]
            prompt = f"{one.text}\n\n{' '.join([*pieces, REASONING])}"
            start, document = len(frame.before), one.choices.document
            yield Example(
                example=f"{split}-{number:05d}",
                split=split,
                prompt=frame(prompt),
                gold=tuple(gold),
                near=tuple(problem.near for problem in problems),
                regions=tuple(problem.region for problem in problems),
                candidates=tuple(code for pair in shown for code in pair),
                evidence=_evidence(one.text, space, problems, start),
                cues=tuple(_moved(_place(one.text, p.cue), start) for p in problems),
                reference=" ".join(reference_words(space, problems)),
                unasked=tuple(sorted({*document.related, *document.filtered}.difference(gold))),
            )


def place_of(text: str, phrase: str) -> Span | None:
    """Where a text says a phrase: all of it, else its first long word that is there.

    >>> place_of("Known Asthma, mild.", "mild persistent")
    (14, 18)
    >>> place_of("Known asthma.", "mild") is None
    True
    """
    telling = (word for word in _LONG_WORD.findall(phrase.lower()) if word not in SMALL)
    for words in (phrase, *telling):
        pattern = r"\s+".join(map(re.escape, words.split()))
        if match := re.search(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE):
            return match.span()
    return None


def cut_to(text: str, most_words: int) -> str:
    """The first words of a text, its line ends kept."""
    for number, match in enumerate(re.finditer(r"\S+", text), start=1):
        if number == most_words:
            return text[: match.end()]
    return text


def _told(document: SourceDocument, space: LabelSpace, most_words: int, unseen: bool) -> Told:
    text = cut_to(document.text, most_words)
    known = {label.code for label in space.labels}
    true = [code for code in document.codes if code in known]
    said = {code for code in true if place_of(text, space.label(code).cue) is not None}
    others = {*known.intersection(document.filtered), *true} - said
    told = Document(document.document, tuple(sorted(said)), tuple(sorted(others)), ())
    return Told(document.document, text, choices_of(space, told, unseen))


def _problem(space: LabelSpace, code: str, near: str) -> Problem:
    label = space.label(code)
    evidence = space.region(label.region).evidence
    return Problem(label.region, code, near, label.cue, space.label(near).cue, evidence)


def _evidence(
    text: str, space: LabelSpace, problems: Iterable[Problem], start: int
) -> tuple[Span, ...]:
    """Places of the regions' findings that lie apart from each other and from the cues."""
    problems = list(problems)
    taken = [_place(text, problem.cue) for problem in problems]
    spans: list[Span] = []
    for problem in problems:
        for finding in problem.evidence:
            span = place_of(text, finding)
            if span is not None and all(span[1] <= a or b <= span[0] for a, b in taken):
                taken.append(span)
                spans.append(_moved(span, start))
    return tuple(spans)


def _place(text: str, cue: str) -> Span:
    span = place_of(text, cue)
    assert span is not None  # only such codes are asked for
    return span


def _moved(span: Span, start: int) -> Span:
    return span[0] + start, span[1] + start


def _hash(seed: int, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}:ask:{name}".encode()).digest()[:8], "big")
