"""Label spaces and examples of documents that a user brings."""

from pathlib import Path

import pandas as pd
import pytest

from mechdistill.data.candidates import CandidateLists, Number, list_all
from mechdistill.data.examples import Example
from mechdistill.data.frame import Frame
from mechdistill.data.labels import LabelSpace, read_label_space, write_label_space
from mechdistill.data.sources.asking import ask, cut_to, documents_to_ask, place_of
from mechdistill.data.sources.choosing import Wanted, choose_labels, split_of_document
from mechdistill.data.sources.collection import SourceDocument, labels_frame, write_documents
from mechdistill.data.sources.counting import Tally
from mechdistill.data.sources.mimic import mimic_collection, open_mimic_iv
from mechdistill.data.twins import twins_of
from mechdistill.data.world import WorldSettings, draw_case
from mechdistill.errors import InputError
from tests.made_mimic import CUES, NAMES, SECRET, TOLD, told_stays, write_made_mimic_iv
from tests.small_tokenizers import byte_level

WANTED = Wanted(regions=5, labels_per_region=3, evidence_per_region=3, never_gold=1)
SETTINGS = WorldSettings(seed=7, groups_in_context=3, problems_min=1, problems_max=1)
COUNTS = {"training": 20, "validation": 4, "ranking": 5, "patching": 6, "test": 7}


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[SourceDocument], pd.DataFrame]:
    folder = write_made_mimic_iv(tmp_path_factory.mktemp("mimic"), told_stays(), TOLD)
    with mimic_collection(open_mimic_iv(folder, None), 10, folder) as found:
        documents = list(found.documents)
        uses = write_documents(folder / "documents.parquet", documents, Tally())
    return documents, labels_frame(found.labels, uses.uses, uses.training_uses)


@pytest.fixture(scope="module")
def space(read: tuple[list[SourceDocument], pd.DataFrame]) -> LabelSpace:
    documents, labels = read
    rows = [
        (one.document, one.codes, one.filtered)
        for one in documents
        if split_of_document(one, SETTINGS.seed, True) == "training"
    ]
    return choose_labels(labels, rows, WANTED, SETTINGS.seed, "made", "brought clinical")


@pytest.fixture(scope="module")
def examples(read: tuple[list[SourceDocument], pd.DataFrame], space: LabelSpace) -> list[Example]:
    told = documents_to_ask(read[0], space, SETTINGS, COUNTS, 60, True)
    return list(ask(told, space, SETTINGS, Frame("<", ">")))


def test_regions_are_categories_named_by_what_their_titles_share(space: LabelSpace) -> None:
    assert len(space.regions) == 5
    assert all(NAMES[region.code] == region.name for region in space.regions)
    assert {label.cue for label in space.labels} <= set(CUES)
    assert len(space.never_gold) == 1


def test_the_space_holds_training_documents_and_no_word_of_any(
    space: LabelSpace, read: tuple[list[SourceDocument], pd.DataFrame], tmp_path: Path
) -> None:
    split = {one.document: split_of_document(one, SETTINGS.seed, True) for one in read[0]}
    assert {split[one.title] for one in space.documents} == {"training"}
    write_label_space(tmp_path / "space.json", space)
    assert read_label_space(tmp_path / "space.json") == space
    text = (tmp_path / "space.json").read_text()
    assert not any(word in text for word in SECRET.replace(",", "").split())


def test_made_up_notes_can_be_drawn_from_it(space: LabelSpace) -> None:
    import numpy as np

    case = draw_case(space, SETTINGS, "training", np.random.default_rng(0))
    assert case.problems and "Xanthippe" not in case.prompt


def test_examples_are_real_texts_with_candidates(
    examples: list[Example], space: LabelSpace, read: tuple[list[SourceDocument], pd.DataFrame]
) -> None:
    texts = {one.text: one for one in read[0]}
    assert {split: sum(e.split == split for e in examples) for split in COUNTS} == COUNTS
    for example in examples:
        text, _, candidates = example.prompt[1:].partition("\n\nCandidates:")
        document = texts[text]
        assert candidates.endswith("Reasoning:>")
        assert set(example.gold) <= set(document.codes)
        assert not set(example.candidates) & set(document.codes) - set(example.gold)
        assert all(
            space.label(near).region == region
            for near, region in zip(example.near, example.regions, strict=True)
        )
        assert [example.prompt[a:b] for a, b in example.cues] == [
            space.label(code).cue for code in example.gold
        ]
        findings = {f for code in example.regions for f in space.region(code).evidence}
        assert {example.prompt[a:b] for a, b in example.evidence} <= findings
        assert example.evidence


def test_codes_that_are_never_gold_are_gold_in_test_notes_alone(
    examples: list[Example], space: LabelSpace
) -> None:
    unseen = set(space.never_gold)
    assert not any(unseen & set(one.gold) for one in examples if one.split != "test")


def test_the_choice_depends_on_no_order(
    examples: list[Example], space: LabelSpace, read: tuple[list[SourceDocument], pd.DataFrame]
) -> None:
    told = documents_to_ask(reversed(read[0]), space, SETTINGS, COUNTS, 60, True)
    assert list(ask(told, space, SETTINGS, Frame("<", ">"))) == examples


def test_notes_have_twins(examples: list[Example], space: LabelSpace) -> None:
    tokenizer = byte_level([example.prompt for example in examples])
    twins = [twin for one in examples[-7:] for twin in twins_of(one, space, tokenizer, 0)]
    flipped = [twin for twin in twins if twin.twin == "K2"]
    assert flipped
    for twin in flipped:
        before = next(one for one in examples if one.example == twin.example)
        cue = space.label(before.near[0]).cue
        assert any(twin.prompt[a:b].startswith(cue) for a, b in twin.changed)


@pytest.mark.parametrize("number", [8, "all"])
def test_lists_of_documents_are_written_anew(
    examples: list[Example], space: LabelSpace, number: Number
) -> None:
    lists = CandidateLists(
        space, Frame("<", ">"), number, force_gold=False, list_first=True, seed=7
    )
    found, table = list_all(examples, lists, 7)
    assert not any(word in table.to_csv() for word in SECRET.replace(",", "").split())
    for drawn, one in zip(examples, found, strict=True):
        note = drawn.prompt[1 : drawn.prompt.index("\n\nCandidates:")]
        assert one.prompt.startswith("<Candidates:")
        assert one.prompt.endswith(f"\n\n{note}\n\nReasoning:>")
        told = [one.prompt[a:b] for a, b in one.cues]
        assert told == [drawn.prompt[a:b] for a, b in drawn.cues]
        # true codes that are not asked for: left out where labels are picked
        silent = set(one.unasked) & set(one.candidates)
        assert silent == (set(one.unasked) if number == "all" else set())
    assert any(one.unasked for one in found)


def test_too_few_documents_say_how_many_there_are(
    space: LabelSpace, read: tuple[list[SourceDocument], pd.DataFrame]
) -> None:
    with pytest.raises(InputError, match=r"data.splits.test is 999, and \d\d documents of that"):
        documents_to_ask(read[0], space, SETTINGS, COUNTS | {"test": 999}, 60, True)
    with pytest.raises(InputError, match=r"data.splits.training is 20, and 0 documents"):
        documents_to_ask(read[0], space, SETTINGS, COUNTS, 3, True)


def test_too_few_regions_say_how_many_there_are(
    read: tuple[list[SourceDocument], pd.DataFrame],
) -> None:
    with pytest.raises(InputError, match=r"9 regions of 3 labels are asked for, .* give 6"):
        choose_labels(read[1], [], Wanted(9, 3, 3, 0), 7, "made", "brought")


def test_a_published_split_is_kept_and_other_splits_come_from_its_training_part() -> None:
    def splits(part: str, with_validation: bool) -> set[str]:
        made = (SourceDocument(f"{n}", f"{n}", part, "", ()) for n in range(300))
        return {split_of_document(one, 7, with_validation) for one in made}

    assert splits("test", True) == {"test"}
    assert splits("validation", True) == {"validation"}
    assert splits("training", True) == {"training", "ranking", "patching"}
    assert splits("training", False) == {"training", "ranking", "patching", "validation"}
    assert splits("", True) == {"training", "validation", "ranking", "patching", "test"}


def test_labels_of_no_categories_are_grouped_by_shared_documents() -> None:
    groups = (("bread", "rye", "loaf"), ("ship", "mast", "hull"))
    names = [name for group in groups for name in group]
    codes = {name: f"L{n:06d}" for n, name in enumerate(names)}
    rows = [(f"d{n}", [codes[name] for name in groups[n % 2][n % 3 :]], []) for n in range(60)]
    uses = [sum(codes[name] in row[1] for row in rows) for name in names]
    labels = pd.DataFrame(
        {"code": codes.values(), "kind": "label", "title": names, "training_documents": uses}
    )
    space = choose_labels(labels, rows, Wanted(2, 2, 2, 0), 7, "made", "brought")
    members = [{space.label(c).description for c in space.members(r.code)} for r in space.regions]
    assert len(members) == 2 and all(
        any(found <= set(group) for group in groups) for found in members
    )


def test_places_and_cuts() -> None:
    assert place_of("Chronic\nsystolic failure", "chronic systolic") == (0, 16)
    assert place_of("systolically with", "systolic with") is None
    assert cut_to("one  two\nthree", 2) == "one  two"
    assert cut_to("one", 5) == "one"
