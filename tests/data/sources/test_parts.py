"""Clean-up of texts, codes, published splits and counts, and the file of documents."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.data.sources.collection import (
    SourceDocument,
    SourceLabel,
    labels_frame,
    read_documents,
    write_documents,
)
from mechdistill.data.sources.counting import Tally
from mechdistill.data.sources.icd_codes import with_dot, without_trailing_dot
from mechdistill.data.sources.mimic import check_mimic, open_mimic_iii, open_mimic_iv
from mechdistill.data.sources.note_texts import cleaned_words, is_empty
from mechdistill.data.sources.propensities import propensity_constants
from mechdistill.data.sources.published import MIMIC_IV, compare, other_version
from mechdistill.errors import InputError
from mechdistill.evaluate.ranking import inverse_propensity
from tests.made_mimic import write_made_mimic_iii, write_made_mimic_iv


def published_cleanup(text: str) -> str:
    """The published steps, one by one."""
    text = re.sub(r"[^A-Za-z0-9]+", " ", text.lower())
    text = re.sub(r"(\s\d+)+\s", " ", text)
    return re.sub(r"\s+", " ", text).strip()


@given(st.text(alphabet="aB7 .\n-é", max_size=30))
def test_clean_up_is_the_published_one(text: str) -> None:
    assert " ".join(cleaned_words(text)) == published_cleanup(text)
    assert is_empty(text) == (published_cleanup(text) == "")


@pytest.mark.parametrize(
    ("code", "version", "diagnosis", "dotted"),
    [
        ("E8788", 9, True, "E878.8"),
        ("E878", 9, True, "E878"),
        ("V1582", 9, True, "V15.82"),
        ("0389", 9, True, "038.9"),
        ("042", 9, True, "042"),
        ("0066", 9, False, "00.66"),
        ("17", 9, False, "17"),
        ("I10", 10, True, "I10"),
        ("E1165", 10, True, "E11.65"),
        ("02HV33Z", 10, False, "02HV33Z"),
    ],
)
def test_dots(code: str, version: int, diagnosis: bool, dotted: str) -> None:
    assert with_dot(code, version, diagnosis) == dotted


def test_diagnoses_and_procedures_collide_without_dots_only() -> None:
    assert with_dot("0117", 9, True) != with_dot("0117", 9, False)
    assert without_trailing_dot("N19.") == "N19"


def document(name: str, patient: str, part: str = "", *codes: str) -> SourceDocument:
    return SourceDocument(name, patient, part, f"Text of {name}.", codes or ("A",), ("B",))


def test_documents_come_back_in_order(tmp_path: Path) -> None:
    written = [document(f"{n}", f"{n // 2}", "", "A", "C") for n in range(1203)]
    read = write_documents(tmp_path / "documents.parquet", written, tally := Tally())
    assert list(read_documents(tmp_path / "documents.parquet")) == written
    assert (read.uses, read.training) == (Counter({"A": 1203, "C": 1203}), 1203)
    assert tally.counts == {"documents": 1203}


def test_documents_are_written_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_documents(tmp_path / name, [document("1", "1"), document("2", "2")], Tally())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_documents_are_not_held_in_memory(tmp_path: Path) -> None:
    """They are in the unfinished file before the last one is asked for."""

    def rows() -> Iterator[SourceDocument]:
        yield from (SourceDocument(f"{n}", f"{n}", "", f"{n}" * 9, ("A",)) for n in range(1001))
        (unfinished,) = tmp_path.iterdir()
        assert unfinished.stat().st_size > 5_000
        yield document("last", "last")

    write_documents(tmp_path / "documents.parquet", rows(), Tally())


def test_a_patient_in_two_parts_of_a_split(tmp_path: Path) -> None:
    rows = [document("1", "77", "training"), document("2", "77", "test")]
    with pytest.raises(InputError, match="a patient in training and in test") as caught:
        write_documents(tmp_path / "documents.parquet", rows, Tally())
    assert "77" not in str(caught.value).replace(str(tmp_path), "")
    assert not list(tmp_path.iterdir())


def test_a_document_twice_and_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there twice"):
        write_documents(tmp_path / "a", [document("1", "1"), document("1", "1")], Tally())
    with pytest.raises(InputError, match="no document is left"):
        write_documents(tmp_path / "a", [], Tally())


def test_training_counts_leave_the_test_part_out(tmp_path: Path) -> None:
    rows = [document("1", "1", "training"), document("2", "2", "test")]
    read = write_documents(tmp_path / "a", rows, Tally())
    assert read.training == 1
    frame = labels_frame({"A": SourceLabel("A", "label", "Title")}, read.uses, read.training_uses)
    assert frame.iloc[0].tolist() == ["A", "label", "Title", 2, 1]


def split_lists(folder: Path, **lists: list[int]) -> Path:
    folder.mkdir()
    for part in ("train", "dev", "test"):
        lines = "".join(f"{admission}\n" for admission in lists.get(part, []))
        (folder / f"{part}_full_hadm_ids.csv").write_text(lines)
    return folder


def test_published_split_of_mimic_iii(tmp_path: Path) -> None:
    folder = write_made_mimic_iii(tmp_path / "data")
    split = split_lists(tmp_path / "a", train=[100_000, 100_001], dev=[100_002], test=[100_004, 5])
    counts = check_mimic(open_mimic_iii(folder, split, False), 1).counts
    assert counts["documents of the published split: training"] == 2
    assert counts["documents of the published split: test"] == 1
    assert counts["documents that the published split does not name, dropped"] == 16
    assert counts["admissions of the published split that the data lack"] == 1
    twice = split_lists(tmp_path / "b", train=[100_000], test=[100_000])
    with pytest.raises(InputError, match="line 1: this admission is in training and in test"):
        open_mimic_iii(folder, twice, False)
    (twice / "dev_full_hadm_ids.csv").write_text("hadm_id\n")
    with pytest.raises(InputError, match="line 1: found a text of 7 characters"):
        open_mimic_iii(folder, twice, False)
    (twice / "train_full_hadm_ids.csv").unlink()
    with pytest.raises(InputError, match=r"is missing\n.*put the published split there"):
        open_mimic_iii(folder, twice, False)


def test_published_split_of_mimic_iv(tmp_path: Path) -> None:
    folder = write_made_mimic_iv(tmp_path / "data")
    ids = [20_000_000 + n for n in range(40)]
    names = ["train"] * 30 + ["val"] * 4 + ["test"] * 6
    table = pd.DataFrame({"_id": ids, "split": names})
    table.to_feather(tmp_path / "mimiciv_icd10_split.feather")
    counts = check_mimic(open_mimic_iv(folder, tmp_path), 1).counts
    assert counts["documents of the published split: validation"] == 4
    table["split"] = "dev"
    table.to_feather(tmp_path / "mimiciv_icd10_split.feather")
    with pytest.raises(InputError, match="row 1: expected a whole number as _id"):
        open_mimic_iv(folder, tmp_path)
    (tmp_path / "mimiciv_icd10_split.feather").write_bytes(b"no feather")
    with pytest.raises(InputError, match="is no Feather table"):
        open_mimic_iv(folder, tmp_path)


def test_counts_stand_beside_those_of_the_version() -> None:
    found = {"rows of note/discharge": 331_793, "rows of hosp/diagnoses_icd": 6_364_488, "new": 1}
    rows = {row.what: row.published for row in compare(found, MIMIC_IV["2.2"])}
    assert rows == {
        "rows of note/discharge": 331_793,
        "rows of hosp/diagnoses_icd": 4_756_326,
        "new": None,
    }
    assert other_version(found, MIMIC_IV, "2.2") == "3.1"
    assert other_version(found, MIMIC_IV, "3.1") is None
    assert other_version({"rows of note/discharge": 5}, MIMIC_IV, "2.2") is None


def test_propensities_go_by_data_set() -> None:
    """Worked by hand: C = (ln 8 - 1) 2.5^0.55; with four of eight documents 1 + C 5.5^-0.55."""
    a, b = propensity_constants("LF-WikiSeeAlso-320K")
    assert inverse_propensity({"x": 4}, 8, a, b)["x"] == pytest.approx(1.69963, abs=1e-5)
    assert propensity_constants("LF-AmazonTitles-131K") == (0.6, 2.6)
    assert propensity_constants("anything") == (0.55, 1.5)
