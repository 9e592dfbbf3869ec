"""The MIMIC-IV reader on invented tables, and whatever awkward things tables do."""

import gzip
from pathlib import Path

import pytest

from mechdistill.data.sources import mimic_iv
from mechdistill.data.sources.collection import SourceDocument
from mechdistill.data.sources.counting import Tally
from mechdistill.data.sources.mimic import check_mimic, mimic_collection, open_mimic_iv
from mechdistill.errors import InputError
from tests.made_mimic import (
    SECRET,
    Rows,
    edit_bytes,
    edit_rows,
    made_stays,
    read_rows,
    write_made_mimic_iv,
)

NOTES, DIAGNOSES, PROCEDURES = (
    f"{name}.csv.gz" for name in (mimic_iv.NOTES, mimic_iv.DIAGNOSES, mimic_iv.PROCEDURES)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_made_mimic_iv(tmp_path / "mimic-iv")


def documents(folder: Path, least: int = 1) -> list[SourceDocument]:
    with mimic_collection(open_mimic_iv(folder, None), least, folder / "work") as found:
        return list(found.documents)


def check(folder: Path, least: int = 1) -> Tally:
    return check_mimic(open_mimic_iv(folder, None), least)


def refused(folder: Path, *parts: str) -> None:
    """The check fails, says all parts, and nothing of a note."""
    with pytest.raises(InputError) as caught:
        check(folder)
    for part in parts:
        assert part in str(caught.value)
    assert not any(word in str(caught.value) for word in SECRET.replace(",", "").split())


def test_documents_are_what_was_written(folder: Path) -> None:
    stays = made_stays()
    read = documents(folder)
    assert [int(one.document) for one in read] == [stay.admission for stay in stays]
    assert [int(one.patient) for one in read] == [stay.patient for stay in stays]
    assert [one.text for one in read] == [stay.text.strip() for stay in stays]
    dotted = {"I5021": "I50.21", "I5023": "I50.23", "J4520": "J45.20", "J4550": "J45.50"}
    assert [one.codes for one in read] == [
        (*sorted(dotted.get(code, code) for code in stay.diagnoses), *stay.procedures)
        for stay in stays
    ]


def test_counts_stand_in_the_check(folder: Path) -> None:
    counts = check(folder).counts
    assert counts["rows of note/discharge"] == counts["documents"] == 40
    assert counts["rows of hosp/diagnoses_icd"] == 80
    assert (counts["codes of diagnoses"], counts["codes of procedures"]) == (5, 2)
    assert counts["codes"] == 7


def test_check_and_reading_count_alike(folder: Path) -> None:
    with mimic_collection(open_mimic_iv(folder, None), 9, folder / "work") as found:
        kept = len(list(found.documents))
        counts = check(folder, 9).counts
        assert counts["documents"] == kept
        assert {key: n for key, n in counts.items() if key != "documents"} == found.tally.counts


def test_rare_codes_go_by_kind_and_documents_without_a_code_with_them(folder: Path) -> None:
    procedures = {"02HV33Z", "5A1D70Z"}  # of ten documents each
    for least, left in ((10, procedures), (11, set())):
        codes = {code for one in documents(folder, least) for code in one.codes}
        assert codes & procedures == left
    edit_rows(folder / PROCEDURES, lambda rows: rows[:1])
    stays = made_stays()
    edit_rows(
        folder / DIAGNOSES,
        lambda rows: (
            [r for r in rows if r[1] != str(stays[0].admission)]
            + [[str(stays[0].patient), str(stays[0].admission), "1", "Z992", "10"]]
        ),
    )
    counts = check(folder, 2).counts
    assert counts["documents"] == 39
    assert counts["documents without a code of enough documents, dropped"] == 1


def test_only_icd_10_codes_count_and_notes_without_any_are_dropped(folder: Path) -> None:
    def first_admission_is_old(rows: Rows) -> None:
        for row in rows[1:3]:
            row[3:] = ["4019" if row[2] == "1" else "E8788", "9"]

    edit_rows(folder / DIAGNOSES, first_admission_is_old)
    tally = check(folder)
    assert tally.counts["documents"] == 39
    assert tally.counts["notes of admissions without a code, dropped"] == 1


def test_names_of_columns_in_any_case_behind_a_byte_order_mark(folder: Path) -> None:
    before = documents(folder)
    edit_rows(folder / DIAGNOSES, lambda rows: rows[0].__setitem__(3, "ICD_CODE"))
    edit_bytes(folder / DIAGNOSES, lambda data: b"\xef\xbb\xbf" + data)
    assert documents(folder) == before


def test_line_ends_of_windows(folder: Path) -> None:
    before = documents(folder)
    for name in (NOTES, DIAGNOSES):
        edit_bytes(folder / name, lambda data: data.replace(b"\n", b"\r\n"))
    assert documents(folder) == before


def test_plain_files_read_as_packed_ones_do(folder: Path) -> None:
    before = documents(folder)
    path = folder / NOTES
    path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    refused(folder, "discharge.csv.gz and", "are both there", "keep one of them")
    path.unlink()
    assert documents(folder) == before


def test_further_columns_are_ignored_with_one_warning(folder: Path) -> None:
    edit_rows(folder / DIAGNOSES, lambda rows: [[*row, "ward"] for row in rows])
    (said,) = check(folder).warnings
    assert said.endswith("columns ward are ignored")


def test_a_missing_column_is_named(folder: Path) -> None:
    edit_rows(folder / DIAGNOSES, lambda rows: [[*row[:3], row[4]] for row in rows])
    refused(folder, DIAGNOSES, "column icd_code is missing", "header line")


def test_a_lost_header_shows_no_text(folder: Path) -> None:
    edit_rows(folder / NOTES, lambda rows: rows[1:])
    refused(folder, NOTES, "column note_id, subject_id", "is missing", "8 fields")


def test_all_missing_files_are_named_at_once(folder: Path) -> None:
    (folder / NOTES).unlink()
    (folder / PROCEDURES).unlink()
    refused(folder, "note/discharge.csv.gz, hosp/procedures_icd.csv.gz", "links do")
    refused(folder / "none", "is no folder")


def test_a_cut_off_file_says_how_far_it_goes(folder: Path) -> None:
    path = folder / NOTES
    path.write_bytes(path.read_bytes()[:-20])
    refused(folder, NOTES, "cut off or damaged behind row", "at byte", "fetch the file again")


def test_a_damaged_file(folder: Path) -> None:
    data = bytearray((folder / DIAGNOSES).read_bytes())
    data[-6] ^= 0xFF  # the checksum
    (folder / DIAGNOSES).write_bytes(bytes(data))
    refused(folder, DIAGNOSES, "cut off or damaged behind row 80")
    (folder / DIAGNOSES).write_bytes(b"not packed")
    refused(folder, DIAGNOSES, "is no gzip file")


def test_text_in_another_encoding_is_not_shown(folder: Path) -> None:
    edit_bytes(folder / NOTES, lambda data: data.replace(b"stay 0", b"caf\xe9 0"))
    refused(folder, NOTES, "behind row 0: byte 0xe9 is no UTF-8")


def test_a_quote_that_is_not_closed(folder: Path) -> None:
    edit_bytes(folder / NOTES, lambda data: data[: data.rindex(b'"')] + b"\n")
    refused(folder, NOTES, "a quote is not closed")


def test_a_row_of_too_few_fields(folder: Path) -> None:
    edit_rows(folder / DIAGNOSES, lambda rows: [*rows[:4], rows[4][:4], *rows[5:]])
    refused(folder, f"{DIAGNOSES}, row 4: found 4 fields, expected 5")


def test_values_of_a_shifted_row_are_not_shown(folder: Path) -> None:
    edit_rows(folder / DIAGNOSES, lambda rows: rows[7].__setitem__(3, SECRET))
    refused(folder, f"row 7: column icd_code: found a text of {len(SECRET)} characters, expected")


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        (4, "11", "row 3: column icd_version: found '11', expected 9 or 10"),
        (4, "10.0", "takes it for numbers"),
        (3, "4019.0", "row 3: column icd_code: found '4019.0', expected a code of 1 to 7 letters"),
        (3, "401.9", "without a dot"),
        (1, "20000001.0", "column hadm_id: found a number of 10 characters that is not whole"),
        (1, "", "column hadm_id: found nothing, expected a whole number"),
        (0, "999", "columns subject_id and hadm_id: this admission is another patient's"),
    ],
)
def test_a_wrong_value_is_named(folder: Path, column: int, value: str, said: str) -> None:
    edit_rows(folder / DIAGNOSES, lambda rows: rows[3].__setitem__(column, value))
    refused(folder, DIAGNOSES, said)


def test_a_wrong_type_of_note(folder: Path) -> None:
    edit_rows(folder / NOTES, lambda rows: rows[2].__setitem__(3, "RR"))
    refused(folder, "row 2: column note_type: found 'RR', expected DS (summary) or AD (addendum)")


def test_lost_zeros_of_old_procedures(folder: Path) -> None:
    def with_codes(*codes: str) -> None:
        rows = [["1", str(n), "1", "2150-01-01", code, "9"] for n, code in enumerate(codes)]
        edit_rows(folder / PROCEDURES, lambda all_: [*all_[:21], *rows])

    with_codes("640", "0066")
    assert check(folder).counts["documents"] == 40
    with_codes("3893", "640", "66")
    refused(folder, f"{PROCEDURES}, row 22: column icd_code", "leading zeros are lost")


def test_a_short_old_diagnosis_has_lost_its_zeros(folder: Path) -> None:
    edit_rows(folder / DIAGNOSES, lambda rows: rows[5].__setitem__(slice(3, 5), ["38", "9"]))
    refused(folder, f"{DIAGNOSES}, row 5", "leading zeros are lost")


def test_codes_stay_texts_padding_goes(folder: Path) -> None:
    edit_rows(folder / DIAGNOSES, lambda rows: rows[1].__setitem__(3, "I10    "))
    edit_rows(folder / DIAGNOSES, lambda rows: rows[2].__setitem__(3, "0109"))
    assert documents(folder)[0].codes == ("010.9", "I10")


def test_repeated_and_empty_codes_are_dropped_with_counts(folder: Path) -> None:
    edit_rows(folder / DIAGNOSES, lambda rows: [*rows, rows[1], [*rows[1][:3], "", "10"], rows[1]])
    counts = check(folder).counts
    assert counts["hosp/diagnoses_icd: codes given twice in an admission, dropped"] == 2
    assert counts["hosp/diagnoses_icd: rows without a code, dropped"] == 1


def test_a_note_twice(folder: Path) -> None:
    edit_rows(folder / NOTES, lambda rows: [*rows, rows[3]])
    refused(folder, f"{NOTES}, row 41: column note_id: this note_id is there twice")


def test_a_name_of_another_row(folder: Path) -> None:
    edit_rows(folder / NOTES, lambda rows: rows[3].__setitem__(0, "10000001-DS-77"))
    refused(folder, "row 3: column note_id: it does not say the row's subject_id")


def add_note(folder: Path, kind: str, number: int, text: str) -> None:
    """One more note of the first admission, written before all others."""

    def add(rows: Rows) -> None:
        patient = rows[1][1]
        name = f"{patient}-{kind}-{number}"
        rows.insert(1, [name, patient, rows[1][2], kind, str(number), "", "", text])

    edit_rows(folder / NOTES, add)


def test_the_same_text_again_is_dropped_with_a_count(folder: Path) -> None:
    before = documents(folder)
    add_note(folder, "DS", 9, read_rows(folder / NOTES)[1][-1] + "\r\n")
    assert documents(folder) == before
    assert check(folder).counts["note/discharge: texts given twice in an admission, dropped"] == 1


def test_notes_of_an_admission_by_number_addenda_last(folder: Path) -> None:
    first = documents(folder)[0].text
    for kind, number, text in (("DS", 12, "Twelve."), ("AD", 3, "Added."), ("DS", 9, "Nine.")):
        add_note(folder, kind, number, text)
    assert documents(folder)[0].text == "\n\n".join([first, "Nine.", "Twelve.", "Added."])


def test_a_text_of_marks_alone_is_dropped_with_a_count(folder: Path) -> None:
    edit_rows(folder / NOTES, lambda rows: rows[1].__setitem__(-1, " ___\n ... "))
    counts = check(folder).counts
    assert counts["note/discharge: notes without a text, dropped"] == 1
    assert counts["documents"] == 39


def test_a_note_longer_than_the_usual_limit_of_a_field(folder: Path) -> None:
    text = "word " * 40_000 + "end"
    edit_rows(folder / NOTES, lambda rows: rows[1].__setitem__(-1, text))
    assert documents(folder)[0].text == text


def test_nothing_is_left_of_the_texts_on_disk(folder: Path) -> None:
    documents(folder)
    assert list((folder / "work").iterdir()) == []
