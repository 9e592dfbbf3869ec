"""Small invented tables in the formats of MIMIC-IV and MIMIC-III, awkward rows included."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from mechdistill.data.sources import mimic_iii, mimic_iv
from mechdistill.data.sources.mimic_iv_files import Stay, write_mimic_iv

Rows = list[list[str]]

SECRET = "Xanthippe Quillfeather, beekeeper"
"""Stands in every made note: what must never leave a file of documents."""
DIAGNOSES = {
    "I5021": "Acute systolic (congestive) heart failure",
    "I5023": "Acute on chronic systolic heart failure",
    "J4520": "Mild intermittent asthma, uncomplicated",
    "J4550": "Severe persistent asthma, uncomplicated",
    "I10": "Essential (primary) hypertension",
}
PROCEDURES = {"02HV33Z": "Insertion of infusion device", "5A1D70Z": "Performance of filtration"}


def made_stays(count: int = 40, seed: int = 0) -> list[Stay]:
    """Two admissions a patient, two diagnoses each; every other one has a procedure."""
    rng = np.random.default_rng(seed)
    return [
        Stay(
            10_000_000 + number // 2,
            20_000_000 + number,
            f'Name: ___\n{SECRET}, stay {number}.\nSaid "well", no fever,\nBP 120/80.\n'
            + "Rest as before. " * int(rng.integers(1, 4)),
            tuple(rng.permutation(list(DIAGNOSES))[:2].tolist()),
            (list(PROCEDURES)[number % 4 // 2],) if number % 2 else (),
        )
        for number in range(count)
    ]


NAMES = {
    "I50": "heart failure",
    "J45": "asthma",
    "N18": "chronic kidney disease",
    "E11": "type 2 diabetes mellitus",
    "M16": "osteoarthritis of hip",
    "G43": "migraine",
}
CUES = ("acute systolic", "mild intermittent", "stage three", "with coma")
TOLD = {
    f"{category}{number}": f"{name}, {cue}"
    for category, name in NAMES.items()
    for number, cue in enumerate(CUES)
}
"""Titles of codes that told stays are about: four a category."""


def told_stays(count: int = 300, seed: int = 0) -> list[Stay]:
    """One admission a patient, with codes of three categories; the note says each title."""
    rng = np.random.default_rng(seed)
    stays = []
    for number in range(count):
        categories = rng.permutation(list(NAMES))[:3].tolist()
        codes = [f"{category}{rng.integers(len(CUES))}" for category in categories]
        said = ".\n".join(f"Known {TOLD[code]}" for code in codes)
        text = f"Name: ___\n{SECRET}, stay {number}.\n{said}.\nHome."
        stays.append(Stay(10_000_000 + number, 20_000_000 + number, text, tuple(codes)))
    return stays


def write_made_mimic_iv(
    folder: Path, stays: Sequence[Stay] | None = None, titles: Mapping[str, str] = DIAGNOSES
) -> Path:
    """The folder, with all tables of MIMIC-IV in it."""
    paths = {name: folder / f"{name}.csv.gz" for name in mimic_iv.TABLES}
    write_mimic_iv(paths, made_stays() if stays is None else stays, titles, PROCEDURES)
    return folder


def write_made_mimic_iii(folder: Path, count: int = 20) -> Path:
    """The folder, with all tables of MIMIC-III in it: upper-case headers, all texts quoted.

    Admission 100000 has a report and, written before it, its addendum.
    """
    notes, diagnoses, procedures = [], [], []
    for n in range(count):
        keys = [str(1000 + n // 2), str(100_000 + n)]
        text = f"Admitted [**2151-7-16**].\n{SECRET}, stay {n}."
        notes.append([*keys, "2151-07-16", "", "", "Discharge summary", "Report", "", "", text])
        notes.append([*keys, "2151-07-16", "", "", "Nursing", "Report", "", "", SECRET])
        diagnoses += [[*keys, "1", "4019"], [*keys, "2", ("E8788", "V1582", "0389")[n % 3]]]
        procedures.append([*keys, "1", ("0066", "3893", "9671", "640")[n % 4]])
    notes.insert(
        0,
        ["1000", "100000", "2151-07-15", "", "", "Discharge summary", "Addendum", "", "", "More."],
    )
    diagnoses.append(["1000", "100000", "", ""])  # both may be null
    upper = {
        mimic_iii.NOTES: (
            "SUBJECT_ID,HADM_ID,CHARTDATE,CHARTTIME,STORETIME,CATEGORY,DESCRIPTION,CGID,ISERROR,TEXT",
            notes,
        ),
        mimic_iii.DIAGNOSES: ("SUBJECT_ID,HADM_ID,SEQ_NUM,ICD9_CODE", diagnoses),
        mimic_iii.PROCEDURES: ("SUBJECT_ID,HADM_ID,SEQ_NUM,ICD9_CODE", procedures),
        mimic_iii.DIAGNOSIS_TITLES: (
            "ICD9_CODE,SHORT_TITLE,LONG_TITLE",
            [["4019", "Hypertension NOS", "Unspecified essential hypertension"]],
        ),
        mimic_iii.PROCEDURE_TITLES: (
            "ICD9_CODE,SHORT_TITLE,LONG_TITLE",
            [["0066", "PTCA", "PTCA"]],
        ),
    }
    for name, (header, rows) in upper.items():
        numbered = [[str(n), *row] for n, row in enumerate(rows, start=1)]
        write_rows(folder / f"{name}.csv.gz", [["ROW_ID", *header.split(",")], *numbered])
    return folder


def read_rows(path: Path) -> Rows:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        return list(csv.reader(text))


def write_rows(path: Path, rows: Rows) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def edit_rows(path: Path, edit: Callable[[Rows], Rows | None]) -> None:
    """Change a table; row 0 is its header. `edit` changes the rows or returns others."""
    rows = read_rows(path)
    changed = edit(rows)
    write_rows(path, rows if changed is None else changed)


def edit_bytes(path: Path, edit: Callable[[bytes], bytes]) -> None:
    """Change the bytes that a gzip file holds."""
    path.write_bytes(gzip.compress(edit(gzip.decompress(path.read_bytes())), mtime=0))
