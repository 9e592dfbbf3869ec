"""Label spaces: regions (categories), labels (leaf codes), findings and cues; that of `icd`.

Built once from ICD-10-CM and written to a file; nothing else imports the classification. Other
worlds build theirs elsewhere (`foldoc_labels`).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from mechdistill.artifacts import how_to_make, read_json, write_json
from mechdistill.data.icd_regions import REGION_SOURCES, RegionSource
from mechdistill.data.lexicon import Cue, mine_cue
from mechdistill.data.wording import DEFAULT_WORDING, Wording, wording_of
from mechdistill.errors import InputError

MAX_TERM_WORDS = 4


@dataclass(frozen=True)
class Region:
    """A category. `name` and each phrase of `evidence` are one token; no other has its evidence."""

    code: str
    name: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Label:
    """A leaf code. `text` ("I50.21 acute systolic heart failure") and `cue` are one token each."""

    code: str
    text: str
    region: str
    cue: str
    description: str


@dataclass(frozen=True)
class Document:
    """A real document: which labels it relates to, and what its text tells.

    `related` codes are true. `filtered` codes (filter rows) are neither true nor false. `findings`
    are those of any region that its text names. Codes and findings are sorted.
    """

    title: str
    related: tuple[str, ...]
    filtered: tuple[str, ...]
    findings: tuple[str, ...]


@dataclass(frozen=True)
class LabelSpace:
    """Regions and labels, both in code order; `never_gold` codes are gold in no training text.

    Where `documents` are given, what is true together is what they relate to; without any,
    combinations are drawn. `worded` names the wording of notes.
    """

    regions: tuple[Region, ...]
    labels: tuple[Label, ...]
    never_gold: tuple[str, ...]
    source: str
    documents: tuple[Document, ...] = field(default=(), hash=False)  # many; the rest tells enough
    worded: str = DEFAULT_WORDING

    @cached_property
    def wording(self) -> Wording:
        """The words around findings and cues; InputError if the name stands for none."""
        return wording_of(self.worded)

    @cached_property
    def _labels(self) -> dict[str, Label]:
        return {label.code: label for label in self.labels}

    @cached_property
    def _regions(self) -> dict[str, Region]:
        return {region.code: region for region in self.regions}

    @cached_property
    def _members(self) -> dict[str, tuple[str, ...]]:
        return {
            region.code: tuple(x.code for x in self.labels if x.region == region.code)
            for region in self.regions
        }

    def label(self, code: str) -> Label:
        """Label of a leaf code; KeyError for a code outside the space."""
        return self._labels[code]

    def region(self, code: str) -> Region:
        """Region of a category code; KeyError for a category outside the space."""
        return self._regions[code]

    def region_of(self, code: str) -> Region:
        """Region that a leaf code belongs to."""
        return self._regions[self._labels[code].region]

    def members(self, region: str) -> tuple[str, ...]:
        """Leaf codes of a region in code order."""
        return self._members[region]

    def siblings(self, code: str) -> tuple[str, ...]:
        """The other leaf codes of the region, in code order: what a near-miss is drawn from."""
        return tuple(x for x in self._members[self._labels[code].region] if x != code)


def build_label_space(
    seed: int, regions: int, labels_per_region: int, evidence_per_region: int, never_gold: int
) -> LabelSpace:
    """Draw a label space from ICD-10-CM.

    A leaf is eligible if its description is region words and one cue, and no other leaf of the
    region has that cue. Of the eligible leaves those are taken first whose cue words other drawn
    regions use too, so that a cue says as little as it can about the region.

    Args:
        regions: number of categories drawn from those with enough eligible leaves.
        labels_per_region: leaves a region.
        evidence_per_region: findings a region, at most half of them mined inclusion terms.
        never_gold: codes kept out of every training text as gold, at most one a region.

    Raises:
        InputError: more regions, labels or findings are asked for than the classification gives.
    """
    rng = np.random.default_rng([seed, 1])
    cues = {source.code: _eligible_cues(source) for source in REGION_SOURCES}
    usable = [source for source in REGION_SOURCES if len(cues[source.code]) >= labels_per_region]
    if len(usable) < regions:
        raise InputError(
            f"data.world: {regions} regions of {labels_per_region} labels are asked for, "
            f"ICD-10-CM gives {len(usable)} such regions",
            "ask for fewer regions or fewer labels a region",
        )
    if not 0 <= never_gold <= regions:
        raise InputError(
            f"data.world.never_gold is {never_gold} with {regions} regions",
            f"give a number from 0 to {regions}: at most one code a region",
        )
    picked = sorted(rng.choice(len(usable), regions, replace=False))
    sources = [usable[index] for index in picked]
    evidence = _evidence(sources, evidence_per_region)
    uses = Counter(cue.phrase for source in sources for cue in cues[source.code].values())
    labels = [
        label
        for source in sources
        for label in _choose_labels(source, cues[source.code], uses, labels_per_region, rng)
    ]
    unseen = []
    for index in sorted(rng.choice(regions, never_gold, replace=False)):
        members = [label.code for label in labels if label.region == sources[index].code]
        unseen.append(members[int(rng.integers(len(members)))])
    return LabelSpace(
        regions=tuple(Region(s.code, s.name, evidence[s.code]) for s in sources),
        labels=tuple(labels),
        never_gold=tuple(unseen),
        source=f"ICD-10-CM as in simple-icd-10-cm {version('simple-icd-10-cm')}",
    )


def write_label_space(path: str | Path, space: LabelSpace) -> None:
    """Write a label space as JSON: documents if there are any, a wording that is not the usual."""
    content = asdict(space)
    if not space.documents:
        del content["documents"]
    if space.worded == DEFAULT_WORDING:
        del content["worded"]
    write_json(path, content)


def read_label_space(path: str | Path) -> LabelSpace:
    """Read a label space; InputError if the file is missing, damaged or of another shape."""
    content = read_json(path)
    try:
        return LabelSpace(
            regions=tuple(Region(**_with_tuples(row)) for row in content["regions"]),
            labels=tuple(Label(**row) for row in content["labels"]),
            never_gold=tuple(content["never_gold"]),
            source=content["source"],
            documents=tuple(Document(**_with_tuples(row)) for row in content.get("documents", [])),
            worded=content.get("worded", DEFAULT_WORDING),
        )
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path} is no label space: {error}",
            how_to_make(path),
        ) from error


def _with_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}


def _eligible_cues(source: RegionSource) -> dict[str, Cue]:
    """Leaf code -> cue, for the leaves whose cue is theirs alone and explains the description."""
    import simple_icd_10_cm as icd  # 2.5 s: only the rule that builds the space pays it

    known = _words(icd.get_description(source.code)) | _words(source.name) | source.synonyms
    leaves = [code for code in icd.get_descendants(source.code) if _is_plain_leaf(code)]
    mined = {code: mine_cue(icd.get_description(code), source.name) for code in leaves}
    cues = {code: cue for code, cue in mined.items() if cue and cue.rest <= known}
    uses = Counter(cue.phrase for cue in cues.values())
    return {code: cue for code, cue in sorted(cues.items()) if uses[cue.phrase] == 1}


def _is_plain_leaf(code: str) -> bool:
    """Seven-character codes repeat their parent's description with an encounter suffix."""
    import simple_icd_10_cm as icd

    return bool(icd.is_leaf(code)) and len(code.replace(".", "")) < 7


def _choose_labels(
    source: RegionSource,
    cues: Mapping[str, Cue],
    uses: Counter[str],
    count: int,
    rng: np.random.Generator,
) -> list[Label]:
    import simple_icd_10_cm as icd

    codes = list(cues)
    rng.shuffle(codes)
    codes.sort(key=lambda code: -uses[cues[code].phrase])  # stable: ties stay shuffled
    return [
        Label(
            code=code,
            text=f"{code} {cues[code].applied_to(source.name)}",
            region=source.code,
            cue=cues[code].phrase,
            description=re.sub(r"\s+", " ", icd.get_description(code)),
        )
        for code in sorted(codes[:count])
    ]


def _evidence(sources: Sequence[RegionSource], count: int) -> dict[str, tuple[str, ...]]:
    """Findings a region: inclusion terms first (at most half), then those written for it."""
    names = {word for source in REGION_SOURCES for word in _words(source.name)}
    cue_words = {
        word
        for source in sources
        for cue in _eligible_cues(source).values()
        for word in _words(cue.phrase)
    } - {"of"}
    taken: set[str] = set()
    evidence = {}
    for source in sources:
        mined = [
            term
            for term in _inclusion_terms(source)
            if not _words(term) & (names | cue_words) and term not in taken
        ]
        terms = (mined[: count // 2] + list(source.findings))[:count]
        if len(terms) < count:
            raise InputError(
                f"data.world.evidence_per_region is {count}, region {source.code} has {len(terms)}",
                f"give at most {len(terms)}",
            )
        taken |= set(terms)
        evidence[source.code] = tuple(terms)
    return evidence


def _inclusion_terms(source: RegionSource) -> list[str]:
    """Inclusion terms of the category and all below it that are short and carry no cue word."""
    import simple_icd_10_cm as icd

    terms: dict[str, None] = {}
    for code in [source.code, *icd.get_descendants(source.code)]:
        if len(code.replace(".", "")) < 7:
            terms.update(dict.fromkeys(_plain(term) for term in icd.get_inclusion_term(code)))
    return [
        term
        for term in terms
        if 0 < len(term.split()) <= MAX_TERM_WORDS
        and re.fullmatch(r"[a-z' -]+", term)
        and mine_cue(f"x {term}", source.name) is None
        and not _words(term) & (source.synonyms | {"other", "unspecified", "and", "or", "any"})
    ]


def _plain(term: str) -> str:
    text = re.sub(r"\[[^\]]*\]|\([^)]*\)|\bNOS\b|\bNEC\b", "", term)
    return re.sub(r"\s+", " ", text).strip(" ,;").lower()


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z][\w'-]*", text.lower()))
