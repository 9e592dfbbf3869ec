"""The MIMIC-III reader on invented tables."""

from pathlib import Path

import pytest

from mechdistill.data.sources import mimic_iii
from mechdistill.data.sources.collection import SourceDocument
from mechdistill.data.sources.mimic import check_mimic, mimic_collection, open_mimic_iii
from mechdistill.errors import InputError
from tests.made_mimic import edit_rows, write_made_mimic_iii

NOTES, DIAGNOSES, PROCEDURES = (
    f"{name}.csv.gz" for name in (mimic_iii.NOTES, mimic_iii.DIAGNOSES, mimic_iii.PROCEDURES)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_made_mimic_iii(tmp_path / "mimic-iii")


def documents(folder: Path, historical: bool = False) -> list[SourceDocument]:
    tables = open_mimic_iii(folder, None, historical)
    with mimic_collection(tables, 1, folder / "work") as found:
        return list(found.documents)


def refused(folder: Path, *parts: str) -> None:
    with pytest.raises(InputError) as caught:
        check_mimic(open_mimic_iii(folder, None, False), 1)
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_summaries_with_addenda_behind_and_codes_as_texts(folder: Path) -> None:
    read = documents(folder)
    assert len(read) == 20
    assert read[0].text.endswith("\n\nMore.") and read[0].text.startswith("Admitted")
    assert read[0].codes == ("401.9", "E878.8", "00.66")
    assert [one.codes[1] for one in read[:3]] == ["E878.8", "V15.82", "401.9"]
    assert read[2].codes == ("038.9", "401.9", "96.71")


def test_the_historical_switch_merges_codes_that_lost_their_zeros(folder: Path) -> None:
    edit_rows(folder / PROCEDURES, lambda rows: rows[2].__setitem__(-1, "66"))
    codes = {read.codes[-1] for read in documents(folder, historical=True)}
    assert codes == {"66.", "96.71", "64.0", "38.93"}
    assert {one.codes[-1] for one in documents(folder)} == {"00.66", "66", "38.93", "96.71", "64.0"}
    counts = check_mimic(open_mimic_iii(folder, None, True), 1).counts
    assert counts["codes, historical"] == 4 + 4 and "codes" not in counts


def test_lower_case_headers(folder: Path) -> None:
    before = documents(folder)
    edit_rows(folder / NOTES, lambda rows: rows.__setitem__(0, [x.lower() for x in rows[0]]))
    assert documents(folder) == before


def test_codes_without_a_title_are_kept_and_counted(folder: Path) -> None:
    counts = check_mimic(open_mimic_iii(folder, None, False), 1).counts
    assert counts["codes"] == 8
    assert counts["codes without a title"] == 6


def test_errors_and_notes_without_an_admission_are_dropped_with_counts(folder: Path) -> None:
    edit_rows(folder / NOTES, lambda rows: rows[2].__setitem__(9, "1"))
    edit_rows(folder / NOTES, lambda rows: rows[4].__setitem__(2, ""))
    counts = check_mimic(open_mimic_iii(folder, None, False), 1).counts
    assert counts["NOTEEVENTS: summaries marked as errors (ISERROR), dropped"] == 1
    assert counts["NOTEEVENTS: summaries without an admission, dropped"] == 1
    assert counts["DIAGNOSES_ICD: rows without a code or an admission, dropped"] == 1


def test_admissions_that_were_taken_for_numbers(folder: Path) -> None:
    edit_rows(folder / NOTES, lambda rows: rows[3].__setitem__(2, "100000.0"))
    refused(folder, NOTES, "row 3: column HADM_ID: found a number of 8 characters", "for numbers")


def test_procedures_that_were_taken_for_numbers(folder: Path) -> None:
    def lose_zeros(rows: list[list[str]]) -> None:
        for row in rows[1:]:
            row[-1] = str(int(row[-1]))

    edit_rows(folder / PROCEDURES, lose_zeros)
    refused(folder, f"{PROCEDURES}, row 1", "leading zeros are lost")
