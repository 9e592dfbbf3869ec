"""Both MIMIC data sets as collections: what they have in common once their tables are read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mechdistill.data.sources import mimic_iii, mimic_iv
from mechdistill.data.sources.admissions import Codes, Note, count_codes, note_store
from mechdistill.data.sources.collection import Collection, SourceDocument, SourceLabel
from mechdistill.data.sources.counting import Patients, Tally
from mechdistill.data.sources.split_files import read_iii_split, read_iv_split

KINDS = {"diagnosis": "diagnoses", "procedure": "procedures"}


@dataclass
class Tables:
    """Codes and titles by kind, read; notes, to be iterated once; parts of the published split."""

    codes: Mapping[str, Codes]
    titles: Mapping[str, Mapping[str, str]]
    notes: Iterable[Note]
    parts: Mapping[int, str] | None
    tally: Tally
    historical: bool = False

    def coded_notes(self) -> Iterator[Note]:
        """Notes of admissions that have a code (and a part, where the published split is used)."""
        for note in self.notes:
            if not any(note.admission in codes.by_admission for codes in self.codes.values()):
                self.tally.add("notes of admissions without a code, dropped")
            else:
                yield note


def open_mimic_iv(folder: Path, split_folder: Path | None) -> Tables:
    """Tables of MIMIC-IV; InputError as `mimic_iv` raises them."""
    tables, patients, tally = mimic_iv.tables_of(folder), Patients(), Tally()
    parts = None if split_folder is None else read_iv_split(split_folder)
    names = (mimic_iv.DIAGNOSES, mimic_iv.PROCEDURES)
    titled = (mimic_iv.DIAGNOSIS_TITLES, mimic_iv.PROCEDURE_TITLES)
    titles = [mimic_iv.read_titles(name, tables[name], tally) for name in titled]
    codes = [mimic_iv.read_codes(name, tables[name], patients, tally) for name in names]
    return Tables(
        dict(zip(KINDS, codes, strict=True)),
        dict(zip(KINDS, titles, strict=True)),
        mimic_iv.read_notes(tables[mimic_iv.NOTES], patients, tally),
        parts,
        tally,
    )


def open_mimic_iii(folder: Path, split_folder: Path | None, historical: bool) -> Tables:
    """Tables of MIMIC-III; InputError as `mimic_iii` raises them."""
    tables, patients, tally = mimic_iii.tables_of(folder), Patients(), Tally()
    parts = None if split_folder is None else read_iii_split(split_folder)
    names = (mimic_iii.DIAGNOSES, mimic_iii.PROCEDURES)
    titled = (mimic_iii.DIAGNOSIS_TITLES, mimic_iii.PROCEDURE_TITLES)
    titles = [mimic_iii.read_titles(name, tables[name], historical, tally) for name in titled]
    codes = [
        mimic_iii.read_codes(name, tables[name], historical, patients, tally) for name in names
    ]
    return Tables(
        dict(zip(KINDS, codes, strict=True)),
        dict(zip(KINDS, titles, strict=True)),
        mimic_iii.read_notes(tables[mimic_iii.NOTES], patients, tally),
        parts,
        tally,
        historical,
    )


def check_mimic(tables: Tables, least: int) -> Tally:
    """Read everything without keeping a text; what there is, was dropped, and is left.

    Args:
        least: documents that a code needs.
    """
    patient_of = {note.admission: note.patient for note in tables.coded_notes()}
    admissions = sorted(patient_of)
    labels = _labels(tables, admissions, least)
    chosen = _chosen(tables, admissions, labels)
    tables.tally.add("documents", len(chosen))
    for part, _ in chosen.values():
        if part:
            tables.tally.add(f"documents of the published split: {part}")
    return tables.tally


@contextmanager
def mimic_collection(tables: Tables, least: int, folder: Path) -> Iterator[Collection]:
    """Documents with their texts, which lie in a nameless file in a folder until then."""
    with note_store(folder) as store:
        for note in tables.coded_notes():
            store.add(note)
        admissions = store.admissions()
        labels = _labels(tables, admissions, least)
        chosen = _chosen(tables, admissions, labels)
        documents = (
            SourceDocument(str(admission), str(patient), part, text, codes)
            for (part, codes), (admission, patient, text) in zip(
                chosen.values(), store.texts(chosen), strict=True
            )
        )
        yield Collection(documents, labels, tables.tally)


def _labels(tables: Tables, admissions: Sequence[int], least: int) -> dict[str, SourceLabel]:
    """Codes of enough documents, diagnoses first; with dots the two kinds never collide."""
    tally = tables.tally
    counts = count_codes(admissions, tables.codes)
    for kind, counter in counts.items():
        tally.add(f"codes of {KINDS[kind]} before the least count", len(counter))
    labels = {}
    for kind, counter in counts.items():
        frequent = sorted(code for code, number in counter.items() if number >= least)
        tally.add(f"codes of {KINDS[kind]}", len(frequent))
        for code in frequent:
            labels[code] = SourceLabel(code, kind, tables.titles[kind].get(code, ""))
    tally.add("codes, historical" if tables.historical else "codes", len(labels))
    tally.add("codes without a title", sum(not label.title for label in labels.values()))
    return labels


def _chosen(
    tables: Tables, admissions: Sequence[int], labels: Mapping[str, SourceLabel]
) -> dict[int, tuple[str, tuple[str, ...]]]:
    """Admission -> (part, codes), of admissions that keep a code and are in a part."""
    chosen: dict[int, tuple[str, tuple[str, ...]]] = {}
    for admission in admissions:
        codes = tuple(
            code
            for kind, found in tables.codes.items()
            for code in found.of(admission)
            if code in labels and labels[code].kind == kind
        )
        part = "" if tables.parts is None else tables.parts.get(admission)
        if not codes:
            tables.tally.add("documents without a code of enough documents, dropped")
        elif part is None:
            tables.tally.add("documents that the published split does not name, dropped")
        else:
            chosen[admission] = part, codes
    if tables.parts is not None:
        missing = len(set(tables.parts) - set(admissions))
        tables.tally.add("admissions of the published split that the data lack", missing)
    return chosen
