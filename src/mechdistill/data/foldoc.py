"""FOLDOC, the Free On-line Dictionary of Computing, as documents that name related titles.

An entry is its title and further names, then a text: `<subject, subject>` at its beginning, links
to other entries in braces, sources in brackets, dates in parentheses. Entries that say no more than
"{another}" or "See {another}" are names of the other one. Two tasks are read from it:

| task | related titles of a document |
|---|---|
| `links` | all entries that its text links to |
| `see_also` | those of its "See also" and "Compare" sentences, which are cut out of its text |

A pair whose other half is there too (each names the other) is a filter row, as in the data sets of
the extreme classification repository: neither true nor false.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mechdistill.data.dictd import Entry

Task = Literal["links", "see_also"]

_SUBJECTS = re.compile(r"^(?:\([^()]*\)[.,]?\s*|/[^/]*/\s*|\d+\.\s*)*<([^<>@/{}]+)>")
"""Behind a note on the name, how it is spoken, or the number of the first meaning."""
_LINK = re.compile(r"\{([^{}]+)\}")
_SEE_ALSO = re.compile(
    r"\b(?:See also|Compare)\b(?:[^.{}]|\{[^{}]*\}|\.(?!\s|$))*(?:\.|$)", re.IGNORECASE
)
_REDIRECT = re.compile(r"^(?:<[^<>]+>\s*)?(?:See )?\{([^{}(]+)\}\.?(?:\s*\([\d-]+\))?$")
_WORD = re.compile(r"[a-z]{4,}")
_SOURCE_NOTES = frozenset({"Jargon File"})
"""Linked from "[{Jargon File}]" below texts that were taken from there."""
_MOST_REDIRECTS = 5


@dataclass(frozen=True)
class Article:
    """An entry. `number`: its place among all entries, from 0.

    `links` and `see_also` are names as they stand in braces, `see_also` those of the related-title
    sentences alone. `words`: lower-case words of four letters and more of the text without these
    sentences; `length` counts all words of it.
    """

    number: int
    title: str
    names: tuple[str, ...]
    subject: str
    links: tuple[str, ...]
    see_also: tuple[str, ...]
    redirect: str
    words: frozenset[str]
    length: int


@dataclass(frozen=True)
class Graph:
    """Articles and the pairs (document, related article) of a task, by numbers.

    `related` holds what counts as true, `filtered` the filter rows. No pair is in both. `linked`:
    whatever the text of an article links to, in its order, whatever the task.
    """

    articles: tuple[Article, ...]
    linked: Mapping[int, tuple[int, ...]]
    related: Mapping[int, frozenset[int]]
    filtered: Mapping[int, frozenset[int]]


def read_articles(entries: Iterable[Entry]) -> list[Article]:
    """One article an entry, in their order."""
    return [_article(number, entry) for number, entry in enumerate(entries)]


def task_graph(articles: Sequence[Article], task: Task, least_words: int) -> Graph:
    """The pairs of a task.

    Links to nothing, to the document itself and to sources of texts are dropped; a link to a
    redirection counts as one to its aim.

    Args:
        least_words: documents have that many words, without the sentences that are cut out.
    """
    aims = _aims(articles)
    texts = [article for article in articles if not article.redirect]
    linked = {article.number: _resolved(article.links, article.number, aims) for article in texts}
    if task == "links":
        related = {number: frozenset(others) for number, others in linked.items()}
    else:
        related = {
            article.number: frozenset(_resolved(article.see_also, article.number, aims))
            for article in texts
        }
    documents = [article.number for article in texts if article.length >= least_words]
    both = {
        number: frozenset(other for other in related[number] if number in related[other])
        for number in documents
    }
    return Graph(
        articles=tuple(articles),
        linked=linked,
        related={n: related[n] - both[n] for n in documents if related[n] - both[n]},
        filtered={number: both[number] for number in documents if both[number]},
    )


def _article(number: int, entry: Entry) -> Article:
    head, _, body = entry.text.strip("\n").partition("\n\n")
    names = [" ".join(line.split()) for line in head.splitlines()]
    text = " ".join(body.split())
    subjects = _SUBJECTS.match(text)
    redirect = _REDIRECT.match(text)
    sentences = " ".join(_SEE_ALSO.findall(text))
    rest = _SEE_ALSO.sub(" ", text)
    plain = re.sub(r"<[^<>]*>|\{\([^{}]*\)\}|\[[^\[\]]*\]", " ", rest)
    return Article(
        number=number,
        title=names[0],
        names=tuple(dict.fromkeys([*names, *entry.headwords])),
        subject=subjects.group(1).split(",")[0].strip() if subjects else "",
        links=_links(text),
        see_also=_links(sentences),
        redirect=redirect.group(1) if redirect else "",
        words=frozenset(_WORD.findall(plain.lower())),
        length=len(re.findall(r"\w+", plain)),
    )


def _links(text: str) -> tuple[str, ...]:
    """Names in braces, without addresses of the web and sources."""
    found = dict.fromkeys(_LINK.findall(text))
    return tuple(name for name in found if not name.startswith("(") and name not in _SOURCE_NOTES)


def _resolved(links: Iterable[str], own: int, aims: Mapping[str, int]) -> tuple[int, ...]:
    """Numbers of the articles that links lead to, each once, without the linking one."""
    names = (_known(link, aims) for link in links)
    found = dict.fromkeys(aims[name] for name in names if name is not None)
    return tuple(number for number in found if number != own)


def _aims(articles: Sequence[Article]) -> dict[str, int]:
    """Number of the article that a name leads to, as written and in lower case.

    Titles win over further names, names as written over names in lower case, earlier articles over
    later ones.
    """
    names: dict[str, int] = {}
    for fold in (str, str.lower):
        for article in articles:
            names.setdefault(fold(article.title), article.number)
        for article in articles:
            for name in article.names:
                names.setdefault(fold(name), article.number)
    aims = {}
    for name, number in names.items():
        for _ in range(_MOST_REDIRECTS):
            if not articles[number].redirect:
                aims[name] = number
                break
            known = _known(articles[number].redirect, names)
            if known is None:
                break
            number = names[known]
    return aims


def _known(name: str, names: Mapping[str, int]) -> str | None:
    """The name as it is known: as written, else in lower case."""
    return next((form for form in (name, name.lower()) if form in names), None)
