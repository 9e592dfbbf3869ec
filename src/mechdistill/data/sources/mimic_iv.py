"""MIMIC-IV (hosp) and MIMIC-IV-Note, version 2.2 and 3: discharge summaries with ICD-10 codes.

The recipe is the one that gives 122,279 summaries and 7,942 codes on version 2.2: summaries with a
text, each (admission, text) once, of admissions that have an ICD-10 code; codes with their dots,
each once an admission; of diagnoses and procedures, counted apart over all these summaries, those
of at least 10; summaries that keep a code.
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
    with_dot,
)
from mechdistill.data.sources.lost_zeros import ZeroWatch
from mechdistill.data.sources.note_texts import is_empty, plain_lines
from mechdistill.data.sources.tables import Column, Table, find_table, require_files

VERSION = 10
"""Of the codes that the recipe takes."""
NOTES = "note/discharge"
DIAGNOSES, PROCEDURES = "hosp/diagnoses_icd", "hosp/procedures_icd"
DIAGNOSIS_TITLES, PROCEDURE_TITLES = "hosp/d_icd_diagnoses", "hosp/d_icd_procedures"
TABLES = (NOTES, DIAGNOSES, PROCEDURES, DIAGNOSIS_TITLES, PROCEDURE_TITLES)
FOLDER_REMEDY = (
    "give as data.source.folder a folder with the folders hosp (of MIMIC-IV) and note (of "
    "MIMIC-IV-Note) in it, links do"
)

_NUMBER = re.compile(r"\d+")
_PATIENT = Column("subject_id", _NUMBER, "a whole number", length_of)
_ADMISSION = Column("hadm_id", _NUMBER, "a whole number", length_of)
_VERSION = Column("icd_version", re.compile("9|10"), "9 or 10")
_CODE = Column("icd_code", PLAIN_CODE_OR_NOTHING, EXPECTED_CODE)
_TITLED = (
    Column("icd_code", PLAIN_CODE, EXPECTED_CODE),
    _VERSION,
    Column("long_title"),
)
_NOTE_COLUMNS = (
    Column(
        "note_id",
        re.compile(r"\d+-(?:DS|AD)-\d+"),
        "subject_id-note_type-note_seq",
        lambda value: f"a text of {len(value)} characters",
    ),
    _PATIENT,
    _ADMISSION,
    Column("note_type", re.compile("DS|AD"), "DS (summary) or AD (addendum)"),
    Column("note_seq", _NUMBER, "a whole number"),
    Column("text"),
)


def tables_of(folder: Path) -> dict[str, Table]:
    """The tables by name; InputError if one is missing."""
    require_files(folder, TABLES, FOLDER_REMEDY)
    codes = (_PATIENT, _ADMISSION, _CODE, _VERSION)
    return {
        NOTES: find_table(folder, NOTES, _NOTE_COLUMNS, ("charttime", "storetime")),
        DIAGNOSES: find_table(folder, DIAGNOSES, codes, ("seq_num",)),
        PROCEDURES: find_table(folder, PROCEDURES, codes, ("seq_num", "chartdate")),
        DIAGNOSIS_TITLES: find_table(folder, DIAGNOSIS_TITLES, _TITLED),
        PROCEDURE_TITLES: find_table(folder, PROCEDURE_TITLES, _TITLED),
    }


def read_codes(name: str, table: Table, patients: Patients, tally: Tally) -> Codes:
    """ICD-10 codes of all admissions, from diagnoses_icd or procedures_icd.

    Raises:
        InputError: a value is not as the format has it, or leading zeros are lost.
    """
    diagnosis = name == DIAGNOSES
    codes, zeros = Codes(), ZeroWatch(table, diagnosis)
    for patient, admission, padded, version in table:
        code = padded.strip()
        if not code:
            tally.add(f"{name}: rows without a code, dropped")
            continue
        if version == "9":
            zeros.see(code)  # ICD-9 codes are not used, and tell all the same
            continue
        patients.check(int(admission), int(patient), table)
        if not codes.add(int(admission), with_dot(code, VERSION, diagnosis)):
            tally.add(f"{name}: codes given twice in an admission, dropped")
    zeros.finish()
    tally.finish(name, table)
    return codes


def read_titles(name: str, table: Table, tally: Tally) -> dict[str, str]:
    """Titles of ICD-10 codes with their dots. The key of the file is (code, version)."""
    diagnosis = name == DIAGNOSIS_TITLES
    titles = {
        with_dot(code.strip(), VERSION, diagnosis): title
        for code, version, title in table
        if version == "10"
    }
    tally.finish(name, table)
    return titles


def read_notes(table: Table, patients: Patients, tally: Tally) -> Iterator[Note]:
    """Discharge summaries and addenda that have a text, each text once an admission.

    Raises:
        InputError: a note_id is there twice, or does not fit its columns.
    """
    names: set[str] = set()
    seen = Seen()
    for name, patient, admission, kind, number, raw in table:
        if name in names:
            raise table.error("column note_id: this note_id is there twice", _ONE_RELEASE)
        names.add(name)
        if name != f"{patient}-{kind}-{number}":
            raise table.error(
                "column note_id: it does not say the row's subject_id, note_type and note_seq",
                _ONE_RELEASE,
            )
        patients.check(int(admission), int(patient), table)
        text = plain_lines(raw)
        if is_empty(text):
            tally.add(f"{NOTES}: notes without a text, dropped")
            continue
        note = Note(int(admission), int(patient), kind == "AD", ("", int(number)), text)
        if seen.again(note):
            tally.add(f"{NOTES}: texts given twice in an admission, dropped")
            continue
        yield note
    tally.finish(NOTES, table)


_ONE_RELEASE = "take the table of one release as it was published"
