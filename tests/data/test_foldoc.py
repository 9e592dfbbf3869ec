"""Small invented entries, read as articles and as a graph."""

from mechdistill.data.dictd import Entry
from mechdistill.data.foldoc import Article, Graph, Task, read_articles, task_graph


def article(text: str, *headwords: str) -> Article:
    return read_articles([Entry(headwords or (text.split("\n")[0],), text)])[0]


def graph(task: Task, **bodies: str) -> tuple[dict[str, int], Graph]:
    """A graph of articles by title; none is too short."""
    entries = [Entry((title,), f"{title}\n\n   {body}\n\n") for title, body in bodies.items()]
    return {title: n for n, title in enumerate(bodies)}, task_graph(read_articles(entries), task, 0)


def test_title_names_and_subject() -> None:
    read = article(
        "flour\nmeal\n\n   <baking, food> Ground {grain}.\n\n", "flour", "meal", "farina"
    )
    assert (read.title, read.subject) == ("flour", "baking")
    assert read.names == ("flour", "meal", "farina")


def test_a_subject_stands_behind_notes_and_numbers() -> None:
    for before in ("1. ", '(Or "x", y) ', "/flow'r/ ", "(Note). 1. "):
        assert article(f"t\n\n   {before}<baking> Text.\n").subject == "baking"
    assert article("t\n\n   Text <someone@example.org>.\n").subject == ""
    assert article("t\n\n   Text. 2. <baking> More.\n").subject == ""


def test_links_are_titles_across_lines_without_addresses_and_sources() -> None:
    body = "A {long\n   title}, {(http://x.org/)}.\n\n   [{Jargon File}]\n\n"
    assert article(f"t\n\n   {body}").links == ("long title",)


def test_see_also_sentences_are_cut_out_of_the_words() -> None:
    text = (
        "t\n\n   Plain {bread} here.  See also {St. Crumb}, {crust}.  Compare:\n   {loaf}. After.\n"
    )
    read = article(text)
    assert read.links == ("bread", "St. Crumb", "crust", "loaf")
    assert read.see_also == ("St. Crumb", "crust", "loaf")
    assert read.words == {"plain", "bread", "here", "after"}
    assert read.length == 4


def test_links_resolve_through_names_case_and_redirections() -> None:
    number, made = graph(
        "links", flour="Text.", Meal="{flour}", grist="See {Meal}. (1999-01-01)", a="{GRIST} {none}"
    )
    assert made.related == {number["a"]: {number["flour"]}}


def test_redirections_in_a_circle_lead_nowhere() -> None:
    number, made = graph("links", a="{b}", b="{a}", c="{a} {d}", d="Text.")
    assert made.related == {number["c"]: {number["d"]}}


def test_pairs_that_name_each_other_are_filter_rows() -> None:
    number, made = graph("links", a="To {b} and {c}.", b="To {a}.", c="Text, {c} itself.")
    assert made.related == {number["a"]: {number["c"]}}
    assert made.filtered == {number["a"]: {number["b"]}, number["b"]: {number["a"]}}


def test_the_task_decides_which_pairs_count() -> None:
    bodies = {"a": "To {b}. See also {c}.", "b": "Text.", "c": "To {a}."}
    number, links = graph("links", **bodies)
    assert links.filtered == {number["a"]: {number["c"]}, number["c"]: {number["a"]}}
    _, see_also = graph("see_also", **bodies)
    assert see_also.related == {number["a"]: {number["c"]}}
    assert see_also.filtered == {}


def test_short_texts_are_no_documents() -> None:
    entries = [Entry(("a",), "a\n\n   To {b}.\n"), Entry(("b",), "b\n\n   Text.\n")]
    assert task_graph(read_articles(entries), "links", 2).related == {0: {1}}
    assert task_graph(read_articles(entries), "links", 3).related == {}
