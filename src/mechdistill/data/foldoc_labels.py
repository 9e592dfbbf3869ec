"""The label space of the `foldoc` world: subjects as regions, titles of articles as labels.

| part | what it is |
|---|---|
| region | a subject tag of FOLDOC, such as "language" |
| label | an article of that subject; those of a region are related to in the same documents |
| finding | a word that articles of the subject use far more often than others do |
| cue, task `links` | the label's title, as the document's text would name it |
| cue, task `see_also` | what the label's article links to first and no sibling's does |

Only titles, subjects and single words of the dictionary enter; none of its sentences does.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mechdistill.data.foldoc import Article, Graph, Task
from mechdistill.data.labels import Document, Label, LabelSpace, Region
from mechdistill.data.tokenizer import vocabulary
from mechdistill.data.wording import wording_of
from mechdistill.errors import InputError

WORDING = "encyclopedic"
_TITLE = re.compile(r"[A-Za-z][A-Za-z0-9 +/'-]*[A-Za-z0-9+]")
"""Titles whose words any tokenizer keeps together; brackets, commas and full stops part texts."""
_MOST_TITLE_WORDS = 5
_FEWEST_USES = 3
"""Articles of a subject that use a word, for it to be a finding."""
_LEAST_RATIO = 3.0
"""How much more often a subject uses a finding than the others do; below are common words."""


@dataclass(frozen=True)
class Sizes:
    """What is asked for; see `mechdistill.study.World`."""

    regions: int
    labels_per_region: int
    evidence_per_region: int
    never_gold: int


def build_foldoc_space(
    seed: int, graph: Graph, task: Task, sizes: Sizes, least_documents: int, source: str
) -> LabelSpace:
    """Choose regions and labels that many documents relate to, and what notes say of them.

    The subjects with most documents are taken. Of each the article that most documents relate to is
    taken, then again and again the one that shares most documents with those taken before: so
    siblings are co-cited and make near-misses.

    Args:
        least_documents: documents that a label needs.
        source: what the dictionary is, for the data card.

    Raises:
        InputError: more regions, labels or findings are asked for than the dictionary gives.
    """
    citing = _citing(graph)
    cue_of = _cues(graph, task)
    chosen = _choose_regions(graph, citing, cue_of, sizes, least_documents)
    labels = sorted(
        (
            Label(
                code=code_of(article),
                text=f"{code_of(article)} {article.title}",
                region=subject,
                cue=cue,
                description=f"{article.title} ({subject})",
            )
            for subject, members in chosen.items()
            for article, cue in members
        ),
        key=lambda label: label.code,
    )
    articles = {code_of(article): article for article in graph.articles}
    evidence = _evidence(graph, sorted(chosen), labels, sizes.evidence_per_region)
    rng = np.random.default_rng([seed, 1])
    return LabelSpace(
        regions=tuple(Region(name, name, evidence[name]) for name in sorted(chosen)),
        labels=tuple(labels),
        never_gold=_never_gold(sorted(chosen), labels, sizes.never_gold, rng),
        source=source,
        documents=tuple(_documents(graph, [articles[label.code] for label in labels], evidence)),
        worded=WORDING,
    )


def code_of(article: Article) -> str:
    """Code of an article: its number in the dictionary, so titles that repeat are told apart."""
    return f"F{article.number:05d}"


def _citing(graph: Graph) -> dict[int, frozenset[int]]:
    """Documents that relate to an article."""
    citing: dict[int, set[int]] = {}
    for document, others in graph.related.items():
        for other in others:
            citing.setdefault(other, set()).add(document)
    return {number: frozenset(documents) for number, documents in citing.items()}


def _cues(graph: Graph, task: Task) -> Callable[[Article], list[str]]:
    """Possible cues of an article, the best first."""
    if task == "links":
        return lambda article: [article.title]
    return lambda article: [
        title
        for number in graph.linked[article.number]
        for title in (graph.articles[number].title,)
        if _fits(title)
    ]


def _choose_regions(
    graph: Graph,
    citing: Mapping[int, frozenset[int]],
    cues_of: Callable[[Article], list[str]],
    sizes: Sizes,
    least_documents: int,
) -> dict[str, list[tuple[Article, str]]]:
    """Subject -> its labels with their cues, for the subjects with most documents."""
    by_subject: dict[str, list[Article]] = {}
    for number, documents in citing.items():
        article = graph.articles[number]
        if article.subject and _fits(article.title) and len(documents) >= least_documents:
            by_subject.setdefault(article.subject, []).append(article)
    said = wording_of(WORDING).words
    reserved = {word.lower() for word in {*said, *by_subject}}
    spoken = reserved | {word.lower() for word in vocabulary(LabelSpace((), (), (), ""))}
    found = {}
    for subject, articles in by_subject.items():
        if subject.lower() in {word.lower() for word in said} or not _fits(subject):
            continue
        members = _choose_labels(articles, citing, cues_of, spoken, sizes.labels_per_region)
        if len(members) == sizes.labels_per_region:
            found[subject] = members
    if len(found) < sizes.regions:
        raise InputError(
            f"data.world: {sizes.regions} regions of {sizes.labels_per_region} labels are asked "
            f"for, the dictionary gives {len(found)} such regions",
            "ask for fewer regions or fewer labels a region, or lower data.foldoc.least_documents",
        )

    reach = {
        subject: len({number for article, _ in members for number in citing[article.number]})
        for subject, members in found.items()
    }
    best = sorted(found, key=lambda subject: (-reach[subject], subject))
    return {subject: found[subject] for subject in best[: sizes.regions]}


def _choose_labels(
    articles: Sequence[Article],
    citing: Mapping[int, frozenset[int]],
    cues_of: Callable[[Article], list[str]],
    spoken: Collection[str],
    count: int,
) -> list[tuple[Article, str]]:
    """Articles of a subject that are related to in the same documents, each with a cue of its own.

    A cue is no word that notes use for something else, and neither cue nor title of another label
    of the region.
    """
    left = {article.number: article for article in articles}
    shared: Counter[int] = Counter()
    taken: list[tuple[Article, str]] = []
    cues: set[str] = set()
    titles: set[str] = set()
    while left and len(taken) < count:
        number = max(left, key=lambda n: (shared[n], len(citing[n]), -n))
        article = left.pop(number)
        free = (cue for cue in cues_of(article) if cue.lower() not in {*spoken, *cues, *titles})
        cue = next(free, None)
        if cue is None or article.title.lower() in cues:
            continue
        taken.append((article, cue))
        cues.add(cue.lower())
        titles.add(article.title.lower())
        for other in left:
            shared[other] += len(citing[other] & citing[number])
    return taken


def _evidence(
    graph: Graph, subjects: Sequence[str], labels: Sequence[Label], count: int
) -> dict[str, tuple[str, ...]]:
    """Findings a region: the words that tell most of its articles; no two regions share one.

    A word's worth in a region is n log(p / p'), where n of the region's articles use it, p is their
    share, and p' the share of the other regions' articles (which count one more, of two: a share of
    nothing says little where articles are few).
    """
    tagged = [article for article in graph.articles if article.subject in set(subjects)]
    uses = Counter(word for article in tagged for word in article.words)
    sizes = Counter(article.subject for article in tagged)
    together = Counter((article.subject, word) for article in tagged for word in article.words)
    taken = {word.lower() for phrase in _names(subjects, labels) for word in phrase.split()}
    worth: dict[str, tuple[float, str]] = {}
    for (subject, word), both in together.items():
        elsewhere = (uses[word] - both + 1) / (len(tagged) - sizes[subject] + 2)
        ratio = both / sizes[subject] / elsewhere
        if both >= _FEWEST_USES and ratio >= _LEAST_RATIO and word not in taken:
            worth[word] = max(worth.get(word, (0.0, "")), (both * math.log(ratio), subject))
    words: dict[str, list[str]] = {subject: [] for subject in subjects}
    for word in sorted(worth, key=lambda word: (-worth[word][0], word)):
        words[worth[word][1]].append(word)
    for subject, found in words.items():
        if len(found) < count:
            raise InputError(
                f"data.world.evidence_per_region is {count}, region {subject} has {len(found)}",
                f"give at most {len(found)}",
            )
    return {subject: tuple(found[:count]) for subject, found in words.items()}


def _names(subjects: Sequence[str], labels: Sequence[Label]) -> Iterator[str]:
    """All phrases of the world that a finding must not repeat a word of."""
    yield from subjects
    for label in labels:
        yield from (label.text, label.cue)
    yield from vocabulary(LabelSpace((), (), (), "", worded=WORDING))


def _never_gold(
    subjects: Sequence[str], labels: Sequence[Label], count: int, rng: np.random.Generator
) -> tuple[str, ...]:
    """Codes that are never true in training, at most one a region."""
    if not 0 <= count <= len(subjects):
        raise InputError(
            f"data.world.never_gold is {count} with {len(subjects)} regions",
            f"give a number from 0 to {len(subjects)}: at most one code a region",
        )
    unseen = []
    for index in sorted(rng.choice(len(subjects), count, replace=False)):
        members = [label.code for label in labels if label.region == subjects[index]]
        unseen.append(members[int(rng.integers(len(members)))])
    return tuple(unseen)


def _documents(
    graph: Graph, labels: Sequence[Article], evidence: Mapping[str, Sequence[str]]
) -> Iterator[Document]:
    """The documents that relate to a label, in the order of the dictionary."""
    codes = {article.number: code_of(article) for article in labels}
    findings = {finding for words in evidence.values() for finding in words}
    for number in sorted(graph.related):
        related = sorted(codes[other] for other in graph.related[number] if other in codes)
        if related:
            article = graph.articles[number]
            filtered = graph.filtered.get(number, frozenset())
            yield Document(
                title=f"{code_of(article)} {article.title}",
                related=tuple(related),
                filtered=tuple(sorted(codes[other] for other in filtered if other in codes)),
                findings=tuple(sorted(findings & article.words)),
            )


def _fits(title: str) -> bool:
    """Whether a title can be a phrase of the notes."""
    return len(title.split()) <= _MOST_TITLE_WORDS and _TITLE.fullmatch(title) is not None
