"""MIMIC-III 1.4: discharge summaries with their addenda and ICD-9 codes ("MIMIC-III full").

All summaries of an admission that has codes are one document; labels are diagnoses and procedures,
read as texts. Read as numbers, procedure codes lose leading zeros and merge, which gives the
historical 8,922 labels; `historical` does the same on purpose.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from mechdistill.data.sources.admissions import Codes, Note, Seen
from mechdistill.data.sources.counting import Patients, Tally
from mechdistill.data.sources.found import length_of
from mechdistill.data.sources.icd_codes import (
    EXPECTED_CODE,
    PLAIN_CODE,
    PLAIN_CODE_OR_NOTHING,
    historical_procedure,
    with_dot,
)
from mechdistill.data.sources.lost_zeros import ZeroWatch
from mechdistill.data.sources.note_texts import plain_lines, words_of_caml
from mechdistill.data.sources.tables import Column, Table, find_table, require_files

VERSION = 9
NOTES = "NOTEEVENTS"
DIAGNOSES, PROCEDURES = "DIAGNOSES_ICD", "PROCEDURES_ICD"
DIAGNOSIS_TITLES, PROCEDURE_TITLES = "D_ICD_DIAGNOSES", "D_ICD_PROCEDURES"
TABLES = (NOTES, DIAGNOSES, PROCEDURES, DIAGNOSIS_TITLES, PROCEDURE_TITLES)
FOLDER_REMEDY = "give as data.source.folder the folder with the tables of MIMIC-III 1.4"
SUMMARY = "discharge summary"

_NUMBER, _NUMBER_OR_NOTHING = re.compile(r"\d+"), re.compile(r"\d*")
_PATIENT = Column("SUBJECT_ID", _NUMBER, "a whole number", length_of)
_ADMISSION = Column("HADM_ID", _NUMBER_OR_NOTHING, "a whole number or nothing", length_of)
_NOTE_COLUMNS = (
    Column("ROW_ID", _NUMBER, "a whole number"),
    _PATIENT,
    _ADMISSION,
    Column("CHARTDATE", re.compile(r"(?:\d{4}-\d\d-\d\d.*)?"), "a date", length_of),
    Column("CATEGORY"),
    Column("DESCRIPTION"),
    Column("ISERROR", re.compile(r"|0|1"), "1 or nothing"),
    Column("TEXT"),
)
_TITLED = (Column("ICD9_CODE", PLAIN_CODE, EXPECTED_CODE), Column("LONG_TITLE"))


def tables_of(folder: Path) -> dict[str, Table]:
    """The tables by name; InputError if one is missing."""
    require_files(folder, TABLES, FOLDER_REMEDY)
    codes = (_PATIENT, _ADMISSION, Column("ICD9_CODE", PLAIN_CODE_OR_NOTHING, EXPECTED_CODE))
    others = ("ROW_ID", "SEQ_NUM")
    return {
        NOTES: find_table(folder, NOTES, _NOTE_COLUMNS, ("CHARTTIME", "STORETIME", "CGID")),
        DIAGNOSES: find_table(folder, DIAGNOSES, codes, others),
        PROCEDURES: find_table(folder, PROCEDURES, codes, others),
        DIAGNOSIS_TITLES: find_table(folder, DIAGNOSIS_TITLES, _TITLED, ("ROW_ID", "SHORT_TITLE")),
        PROCEDURE_TITLES: find_table(folder, PROCEDURE_TITLES, _TITLED, ("ROW_ID", "SHORT_TITLE")),
    }


def read_codes(
    name: str, table: Table, historical: bool, patients: Patients, tally: Tally
) -> Codes:
    """Codes of all admissions, from DIAGNOSES_ICD or PROCEDURES_ICD.

    Args:
        historical: merge procedure codes as reading them as numbers did.

    Raises:
        InputError: a value is not as the format has it, or leading zeros are lost.
    """
    diagnosis = name == DIAGNOSES
    codes, zeros = Codes(), ZeroWatch(table, diagnosis)
    for patient, admission, padded in table:
        code = padded.strip()
        if not code or not admission:
            tally.add(f"{name}: rows without a code or an admission, dropped")
            continue
        zeros.see(code)
        patients.check(int(admission), int(patient), table)
        if not codes.add(int(admission), _dotted(code, diagnosis, historical)):
            tally.add(f"{name}: codes given twice in an admission, dropped")
    zeros.finish()
    tally.finish(name, table)
    return codes


def read_titles(name: str, table: Table, historical: bool, tally: Tally) -> dict[str, str]:
    """Titles of codes with their dots; some codes that are used have none in these files.

    Of procedure codes that merge (`historical`) the first one's title is taken.
    """
    diagnosis = name == DIAGNOSIS_TITLES
    titles: dict[str, str] = {}
    for padded, title in table:
        titles.setdefault(_dotted(padded.strip(), diagnosis, historical), title)
    tally.finish(name, table)
    return titles


def _dotted(code: str, diagnosis: bool, historical: bool) -> str:
    merged = historical and not diagnosis
    return historical_procedure(code) if merged else with_dot(code, VERSION, diagnosis)


def read_notes(table: Table, patients: Patients, tally: Tally) -> Iterator[Note]:
    """Discharge summaries by date, addenda behind the others, each text once an admission.

    Raises:
        InputError: a ROW_ID is there twice, or a value is not as the format has it.
    """
    rows: set[int] = set()
    seen = Seen()
    for row, patient, admission, date, category, description, wrong, raw in table:
        if int(row) in rows:
            raise table.error(
                "column ROW_ID: this ROW_ID is there twice",
                "take the table of one release as it was published",
            )
        rows.add(int(row))
        if category.strip().lower() != SUMMARY:
            continue
        if wrong == "1":
            tally.add(f"{NOTES}: summaries marked as errors (ISERROR), dropped")
            continue
        if not admission:
            tally.add(f"{NOTES}: summaries without an admission, dropped")
            continue
        patients.check(int(admission), int(patient), table)
        text = plain_lines(raw)
        if not words_of_caml(text):
            tally.add(f"{NOTES}: summaries without a text, dropped")
            continue
        addendum = description.strip().lower() == "addendum"
        note = Note(int(admission), int(patient), addendum, (date, int(row)), text)
        if seen.again(note):
            tally.add(f"{NOTES}: texts given twice in an admission, dropped")
            continue
        yield note
    tally.finish(NOTES, table)
