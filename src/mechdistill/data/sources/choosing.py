"""A label space of the documents that a user brings: regions, labels, and what notes say of them.

| part | what it is |
|---|---|
| region, ICD codes | a category: what stands before the dot (of a procedure: three characters) |
| region, other labels | a frequent label and those that share most documents with it |
| name of a region | the words that all titles of its labels share, else those of the first title |
| cue of a label | the words of its title that are not all labels' of the region |
| finding of a region | its name, and further words of its labels' titles |

Only titles enter, never a word of a document.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mechdistill.data.labels import Document, Label, LabelSpace, Region
from mechdistill.data.sources.collection import SourceDocument
from mechdistill.data.splits import TRAINING, split_of
from mechdistill.errors import InputError

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9'/-]*")
SMALL = frozenset(
    ("a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "of", "on", "or", "other")
) | {"the", "to", "with", "without"}
"""Words of titles that tell nothing by themselves."""
MOST_NAME_WORDS, MOST_CUE_WORDS = 4, 6


@dataclass(frozen=True)
class Wanted:
    """What is asked for; see `mechdistill.study.World`."""

    regions: int
    labels_per_region: int
    evidence_per_region: int
    never_gold: int


def is_clinical(source: str) -> bool:
    """Whether a source (`data.source.name`) holds clinical notes, by patient.

    Their published splits have a validation part; those of the other sources have none.
    """
    return source != "extreme"


def split_of_document(document: SourceDocument, seed: int, with_validation: bool) -> str:
    """Split of a document: all of a patient are in one.

    Args:
        with_validation: whether the published split has a validation part. Ranking and patching
            notes (and validation notes, where it has none) are taken out of its training part.
    """
    drawn = split_of([document.patient], seed)
    if document.part in ("validation", "test"):
        return document.part
    if not document.part:
        return drawn
    from_training = ("ranking", "patching") if with_validation else _TAKEN_OUT
    return drawn if drawn in from_training else TRAINING


_TAKEN_OUT = ("validation", "ranking", "patching")


def choose_labels(
    labels: pd.DataFrame,
    training: Iterable[tuple[str, Sequence[str], Sequence[str]]],
    wanted: Wanted,
    seed: int,
    source: str,
    worded: str,
) -> LabelSpace:
    """The label space.

    Args:
        labels: columns code, kind, title, training_documents.
        training: (document, codes, filtered codes) of each training document; read once.
        source: what the data set is, for the data card.
        worded: wording of the made-up texts that base students read.

    Raises:
        InputError: the titles give too few regions.
    """
    rows = list(training)
    titled = labels[labels["title"].str.len() > 0]
    titles = dict(zip(titled["code"], titled["title"].map(plain_title), strict=True))
    uses = dict(zip(titled["code"], titled["training_documents"], strict=True))
    icd = set(labels["kind"]) != {"label"}
    groups = _categories(titles) if icd else _clusters(titles, uses, rows, wanted)
    made = _regions(groups, titles, uses, wanted)
    rng = np.random.default_rng([seed, 1])
    space_labels = sorted((label for _, some in made for label in some), key=lambda x: x.code)
    regions = sorted((region for region, _ in made), key=lambda region: region.code)
    known = {label.code for label in space_labels}
    unseen = rng.choice(len(regions), wanted.never_gold, replace=False)
    first_of = {label.region: label.code for label in reversed(space_labels)}
    return LabelSpace(
        regions=tuple(regions),
        labels=tuple(space_labels),
        never_gold=tuple(sorted(first_of[regions[index].code] for index in unseen)),
        source=source,
        documents=tuple(
            Document(name, related, tuple(sorted(known.intersection(filtered))), ())
            for name, codes, filtered in rows
            if (related := tuple(sorted(known.intersection(codes))))
        ),
        worded=worded,
    )


def plain_title(title: str) -> str:
    """Words of a title without marks, in lower case.

    >>> plain_title("Acute systolic (congestive) heart failure")
    'acute systolic congestive heart failure'
    """
    return " ".join(_WORD.findall(title)).lower()


def _categories(titles: Mapping[str, str]) -> dict[str, list[str]]:
    """ICD codes by category."""
    groups: dict[str, list[str]] = {}
    for code in titles:
        category = code.split(".")[0] if "." in code or len(code) < 7 else code[:3]
        groups.setdefault(category, []).append(code)
    return groups


def _clusters(
    titles: Mapping[str, str],
    uses: Mapping[str, int],
    rows: Sequence[tuple[str, Sequence[str], Sequence[str]]],
    wanted: Wanted,
) -> dict[str, list[str]]:
    """The most used labels, each with those that share most documents with it and are free."""
    together: dict[str, Counter[str]] = {}
    for _, codes, _ in rows:
        for code in codes:
            together.setdefault(code, Counter()).update(x for x in codes if x != code)
    free = dict.fromkeys(sorted(titles, key=lambda code: (-uses[code], code)))
    groups: dict[str, list[str]] = {}
    for head in list(free):
        if head not in free or len(groups) == 4 * wanted.regions:
            continue
        shared = [x for x, _ in together.get(head, Counter()).most_common() if x in free]
        if len(shared) + 1 >= wanted.labels_per_region:
            groups[f"R{head[1:]}"] = [head, *shared[: 2 * wanted.labels_per_region]]
            for code in groups[f"R{head[1:]}"]:
                del free[code]
    return groups


def _regions(
    groups: Mapping[str, Sequence[str]],
    titles: Mapping[str, str],
    uses: Mapping[str, int],
    wanted: Wanted,
) -> list[tuple[Region, list[Label]]]:
    """The regions with most documents whose titles tell their labels apart."""
    made: list[tuple[Region, list[Label]]] = []
    names: set[str] = set()
    order = sorted(groups, key=lambda key: (-sum(uses[code] for code in groups[key]), key))
    for category in order:
        members = sorted(groups[category], key=lambda code: (-uses[code], code))
        name = _name([titles[code] for code in members])
        labels = _labels(category, name, members, titles, wanted.labels_per_region)
        if name in names or len(labels) < wanted.labels_per_region:
            continue
        names.add(name)
        said = [word for label in labels for word in label.description.split()]
        often = [word for word, _ in Counter(said).most_common() if word not in SMALL]
        findings = list(dict.fromkeys([name, *often]))[: max(2, wanted.evidence_per_region)]
        made.append((Region(category, name, tuple(findings)), labels))
        if len(made) == wanted.regions:
            return made
    raise InputError(
        f"data.world: {wanted.regions} regions of {wanted.labels_per_region} labels are asked for, "
        f"the titles of the data set give {len(made)}",
        "ask for fewer regions or fewer labels a region, or lower data.source.least_documents",
    )


def _labels(
    category: str, name: str, members: Sequence[str], titles: Mapping[str, str], count: int
) -> list[Label]:
    """Labels of a region whose cues are theirs alone, the most frequent ones first."""
    labels: list[Label] = []
    own = set(name.split())
    for code in members:
        words = [word for word in titles[code].split() if word not in own]
        cue = " ".join(words[:MOST_CUE_WORDS])
        taken = {label.cue for label in labels}
        if any(word not in SMALL for word in words) and cue not in taken and len(labels) < count:
            labels.append(Label(code, f"{code} {titles[code]}", category, cue, titles[code]))
    return labels


def _name(titles: Sequence[str]) -> str:
    """Words that all titles share, as the first has them; else the first words of the first."""
    shared = set.intersection(*(set(title.split()) for title in titles))
    words = [word for word in titles[0].split() if word in shared]
    if all(word in SMALL for word in words):
        words = titles[0].split()
    while words[0] in SMALL and len(words) > 1:
        words = words[1:]
    words = words[:MOST_NAME_WORDS]
    while words[-1] in SMALL and len(words) > 1:
        words = words[:-1]
    return " ".join(words)
