"""What every data set that a user brings is read into: documents with codes, and labels.

Documents go to disk as they are read, a few at a time, and come back the same way.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mechdistill.artifacts import FORMAT, how_to_make, read_table, replacing
from mechdistill.data.sources.counting import Tally
from mechdistill.errors import InputError

PARTS = ("training", "validation", "test")
"""Parts of a published split."""
DOCUMENTS_A_PART = 500
_SCHEMA = pa.schema(
    [
        ("document", pa.string()),
        ("patient", pa.string()),
        ("part", pa.string()),
        ("text", pa.string()),
        ("codes", pa.list_(pa.string())),
        ("filtered", pa.list_(pa.string())),
    ],
    {"mechdistill_format": str(FORMAT)},  # as `artifacts.write_table` stamps it
)


@dataclass(frozen=True)
class SourceDocument:
    """A document. `part` of the published split ("" if none is used).

    `patient` (or the document itself) is what must not be in two splits. `filtered` codes count
    neither as true nor as false.
    """

    document: str
    patient: str
    part: str
    text: str
    codes: tuple[str, ...]
    filtered: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceLabel:
    """A label; `kind` is diagnosis, procedure or label. Some codes in use have no title ("")."""

    code: str
    kind: str
    title: str


@dataclass
class Collection:
    """Documents, to be iterated once, and labels. `tally` is complete when they are read."""

    documents: Iterable[SourceDocument]
    labels: Mapping[str, SourceLabel]
    tally: Tally


@dataclass(frozen=True)
class Uses:
    """Documents that have each code, in all and in training, and training documents.

    Training is the published split's training part, or all documents where there is none.
    """

    uses: Counter[str]
    training_uses: Counter[str]
    training: int


def write_documents(path: str | Path, documents: Iterable[SourceDocument], tally: Tally) -> Uses:
    """Write documents as Parquet while they come, and count their codes.

    Raises:
        InputError: a document is there twice, or a patient in two parts.
    """
    uses: Counter[str] = Counter()
    training: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    part_of: dict[str, str] = {}
    names: set[str] = set()

    def checked() -> Iterator[SourceDocument]:
        for document in documents:
            if document.document in names:
                raise InputError(
                    f"{path}: a document's name is there twice", "make it again from one release"
                )
            names.add(document.document)
            if part_of.setdefault(document.patient, document.part) != document.part:
                raise InputError(
                    f"the published split has a patient in {part_of[document.patient]} and in "
                    f"{document.part}",
                    "take the split files of the same release as the data, or set "
                    "data.source.split_folder to null",
                )
            uses.update(document.codes)
            parts[document.part] += 1
            if document.part in ("", "training"):
                training.update(document.codes)
            tally.add("documents")
            if document.part:
                tally.add(f"documents of the published split: {document.part}")
            yield document

    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, _SCHEMA, compression="zstd") as writer,
    ):
        for batch in _batches(checked()):
            writer.write_table(batch)
    if not names:
        raise InputError(
            "no document is left with a code",
            "look at the counts of data/checked.json: what was dropped, and why; lower "
            "data.source.least_documents",
        )
    return Uses(uses, training, parts[""] + parts["training"])


def read_documents(path: str | Path) -> Iterator[SourceDocument]:
    """Documents in the order of the file, a batch in memory at a time.

    Raises:
        InputError: the file is missing, damaged or of another format.
    """
    read_table(path, ["document"])  # says what is wrong with the file, if anything is
    with pq.ParquetFile(path) as file:
        if file.schema_arrow.names != _SCHEMA.names:
            raise InputError(f"{path} holds no documents", how_to_make(path))
        for group in range(file.num_row_groups):
            for row in file.read_row_group(group).to_pylist():
                lists = {key: tuple(row[key]) for key in ("codes", "filtered")}
                yield SourceDocument(**row | lists)


def labels_frame(
    labels: Mapping[str, SourceLabel], uses: Counter[str], training: Counter[str]
) -> pd.DataFrame:
    """One row a label: code, kind, title, documents, training_documents."""
    rows = [
        (label.code, label.kind, label.title, uses[code], training[code])
        for code, label in labels.items()
    ]
    columns = ["code", "kind", "title", "documents", "training_documents"]
    return pd.DataFrame(rows, columns=columns)


def _batches(documents: Iterable[SourceDocument]) -> Iterator[pa.Table]:
    rows: list[SourceDocument] = []
    for document in documents:
        rows.append(document)
        if len(rows) == DOCUMENTS_A_PART:
            yield _table(rows)
            rows = []
    if rows:
        yield _table(rows)


def _table(rows: list[SourceDocument]) -> pa.Table:
    columns = {field.name: [getattr(row, field.name) for row in rows] for field in _SCHEMA}
    return pa.table(columns, schema=_SCHEMA)
