from collections import Counter
from pathlib import Path

import pytest

from mechdistill.data.dictd import read_dictionary
from mechdistill.data.foldoc import Graph, read_articles, task_graph
from mechdistill.data.foldoc_labels import Sizes, build_foldoc_space
from mechdistill.data.labels import LabelSpace, read_label_space, write_label_space
from mechdistill.data.tokenizer import build_tokenizer
from mechdistill.errors import InputError
from tests.made_dictionary import SUBJECTS, subject_words, write_made_dictionary

SIZES = Sizes(regions=6, labels_per_region=4, evidence_per_region=3, never_gold=2)


def made_graph(folder: Path, task: str) -> Graph:
    sha256 = write_made_dictionary(folder)
    articles = read_articles(read_dictionary(folder, "foldoc", sha256))
    return task_graph(articles, task, least_words=20)


@pytest.fixture(scope="module", params=["links", "see_also"])
def graph(request, tmp_path_factory) -> Graph:
    return made_graph(tmp_path_factory.mktemp("dictionary"), request.param)


@pytest.fixture(scope="module")
def task(graph: Graph) -> str:
    both = sum(len(others) for others in graph.related.values())
    return "links" if both > 900 else "see_also"


@pytest.fixture(scope="module")
def made(graph: Graph, task: str) -> LabelSpace:
    return build_foldoc_space(7, graph, task, SIZES, 2, "an invented dictionary")


def test_counts_are_those_asked_for(made: LabelSpace) -> None:
    assert len(made.regions) == 6
    assert {region.name for region in made.regions} <= set(SUBJECTS)
    assert set(Counter(label.region for label in made.labels).values()) == {4}
    assert len({made.label(code).region for code in made.never_gold}) == 2


def test_labels_are_titles_under_their_number(made: LabelSpace, graph: Graph) -> None:
    for label in made.labels:
        article = graph.articles[int(label.code[1:])]
        assert label.text == f"{label.code} {article.title}"
        assert article.subject == label.region


def test_findings_are_words_of_the_subject_alone(made: LabelSpace) -> None:
    for region in made.regions:
        assert set(region.evidence) <= set(subject_words(SUBJECTS.index(region.name)))


def test_cues_are_titles_or_what_the_article_links_to(
    made: LabelSpace, graph: Graph, task: str
) -> None:
    for label in made.labels:
        number = int(label.code[1:])
        if task == "links":
            assert label.cue == graph.articles[number].title
        else:
            linked = [graph.articles[other].title for other in graph.linked[number]]
            assert label.cue == linked[0] != graph.articles[number].title


def test_cues_tell_siblings_apart_and_are_no_other_word(made: LabelSpace) -> None:
    for region in made.regions:
        siblings = [made.label(code) for code in made.members(region.code)]
        cues = {label.cue for label in siblings}
        assert len(cues) == len(siblings)
        others = {label.text.split(" ", 1)[1] for label in siblings}
        assert all(x.cue not in others - {x.text.split(" ", 1)[1]} for x in siblings)
    findings = {finding for region in made.regions for finding in region.evidence}
    names = {region.name for region in made.regions}
    assert findings.isdisjoint(label.cue for label in made.labels)
    assert names.isdisjoint(label.cue for label in made.labels)


def test_documents_hold_the_graph_cut_to_the_labels(made: LabelSpace, graph: Graph) -> None:
    codes = {label.code for label in made.labels}

    def cut(numbers: frozenset[int]) -> tuple[str, ...]:
        return tuple(sorted({f"F{number:05d}" for number in numbers} & codes))

    expected = {
        number: (cut(others), cut(graph.filtered.get(number, frozenset())))
        for number, others in graph.related.items()
        if cut(others)
    }
    found = {int(d.title[1:6]): (d.related, d.filtered) for d in made.documents}
    assert found == expected
    assert all(not set(d.related) & set(d.filtered) for d in made.documents)


def test_siblings_are_related_to_in_the_same_documents() -> None:
    """Of four articles of a subject the two that share documents are taken, not the most cited."""
    from mechdistill.data.dictd import Entry

    rest = "with words enough that it counts"
    bodies = dict.fromkeys(("aa", "bb", "cc", "dd"), "<baking> crumb flour")
    bodies |= {f"doc{n}": "{aa} " + rest for n in range(6)}
    bodies |= {f"one{n}": "{bb} " + rest for n in range(4)}
    bodies |= {f"two{n}": "{aa} {cc} " + rest for n in range(2)}
    bodies |= {f"rope{n}": "<sailing> canvas" for n in range(9)}
    bodies |= {f"sea{n}": f"{{rope{n}}} {{rope{n + 1}}} {rest}" for n in range(3)}
    entries = [Entry((title,), f"{title}\n\n   {body}\n") for title, body in bodies.items()]
    graph = task_graph(read_articles(entries), "links", 3)
    space = build_foldoc_space(0, graph, "links", Sizes(2, 2, 1, 0), 1, "")
    assert [x.cue for x in space.labels if x.region == "baking"] == ["aa", "cc"]


def test_the_space_survives_the_file(made: LabelSpace, tmp_path: Path) -> None:
    write_label_space(tmp_path / "space.json", made)
    read = read_label_space(tmp_path / "space.json")
    assert read == made
    assert read.wording.start == "Elsewhere:"


def test_every_phrase_is_one_token(made: LabelSpace) -> None:
    tokenizer = build_tokenizer(made)
    phrases = [x for label in made.labels for x in (label.text, label.cue)]
    for phrase in [*phrases, *(word for region in made.regions for word in region.evidence)]:
        assert tokenizer(phrase, add_special_tokens=False)["input_ids"] == [
            tokenizer.convert_tokens_to_ids(phrase)
        ]


def test_same_seed_same_space_and_another_seed_other_unseen_codes(
    graph: Graph, task: str, made: LabelSpace
) -> None:
    assert build_foldoc_space(7, graph, task, SIZES, 2, "an invented dictionary") == made
    others = {build_foldoc_space(s, graph, task, SIZES, 2, "").never_gold for s in range(5)}
    assert len(others) > 1


@pytest.mark.parametrize(
    ("sizes", "named"),
    [
        (Sizes(99, 4, 3, 2), "data.world"),
        (Sizes(6, 99, 3, 2), "data.world"),
        (Sizes(6, 4, 40, 2), "evidence_per_region"),
        (Sizes(6, 4, 3, 7), "never_gold"),
    ],
)
def test_impossible_sizes_are_named(graph: Graph, task: str, sizes: Sizes, named: str) -> None:
    with pytest.raises(InputError, match=named):
        build_foldoc_space(7, graph, task, sizes, 2, "")
