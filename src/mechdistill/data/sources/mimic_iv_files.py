"""Notes written as the files of MIMIC-IV and MIMIC-IV-Note, to be read by `mimic_iv`."""

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from mechdistill.artifacts import replacing
from mechdistill.data.sources import mimic_iv

_DATE, _TIME = "2150-01-01", "2150-01-01 00:00:00"
_HEADERS = {
    mimic_iv.NOTES: "note_id,subject_id,hadm_id,note_type,note_seq,charttime,storetime,text",
    mimic_iv.DIAGNOSES: "subject_id,hadm_id,seq_num,icd_code,icd_version",
    mimic_iv.PROCEDURES: "subject_id,hadm_id,seq_num,chartdate,icd_code,icd_version",
    mimic_iv.DIAGNOSIS_TITLES: "icd_code,icd_version,long_title",
    mimic_iv.PROCEDURE_TITLES: "icd_code,icd_version,long_title",
}


@dataclass(frozen=True)
class Stay:
    """An admission with one note; ICD-10 codes without dots."""

    patient: int
    admission: int
    text: str
    diagnoses: tuple[str, ...]
    procedures: tuple[str, ...] = ()


def write_mimic_iv(
    paths: Mapping[str, Path],
    stays: Iterable[Stay],
    titles: Mapping[str, str],
    procedure_titles: Mapping[str, str],
) -> None:
    """Write the five tables; equal stays give equal bytes.

    Args:
        paths: of the tables, by name (`mimic_iv.TABLES`).
        stays: admissions, written as they come.
        titles: of ICD-10 codes without dots.
        procedure_titles: the same of procedures.
    """
    for name, table in (
        (mimic_iv.DIAGNOSIS_TITLES, titles),
        (mimic_iv.PROCEDURE_TITLES, procedure_titles),
    ):
        with _rows(paths[name], name) as rows:
            rows.writerows((code, 10, title) for code, title in table.items())
    with (
        _rows(paths[mimic_iv.NOTES], mimic_iv.NOTES) as notes,
        _rows(paths[mimic_iv.DIAGNOSES], mimic_iv.DIAGNOSES) as diagnoses,
        _rows(paths[mimic_iv.PROCEDURES], mimic_iv.PROCEDURES) as procedures,
    ):
        written: dict[int, int] = {}
        for stay in stays:
            keys = (stay.patient, stay.admission)
            number = written[stay.patient] = written.get(stay.patient, 0) + 1
            name = f"{stay.patient}-DS-{number}"
            notes.writerow((name, *keys, "DS", number, _TIME, _TIME, stay.text))
            for place, code in enumerate(stay.diagnoses, start=1):
                diagnoses.writerow((*keys, place, code, 10))
            for place, code in enumerate(stay.procedures, start=1):
                procedures.writerow((*keys, place, _DATE, code, 10))


@contextmanager
def _rows(path: Path, name: str) -> Iterator[Any]:
    """A writer of rows behind a table's header, gzipped without a time and a name."""
    with (
        replacing(path) as temporary,
        temporary.open("wb") as raw,
        gzip.GzipFile("", "wb", 1, raw, mtime=0) as packed,
        io.TextIOWrapper(cast(BinaryIO, packed), "utf-8", newline="") as text,
    ):
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(_HEADERS[name].split(","))
        yield rows
