"""Data sets of the Extreme Classification Repository, in whichever of its forms a folder has.

| form | files |
|---|---|
| raw text | trn.json.gz, tst.json.gz, lbl.json.gz (also *.raw.json.gz) |
| sparse | trn_X_Y.txt, tst_X_Y.txt, trn_X_Xf.txt, tst_X_Xf.txt, Yf.txt, Xf.txt |
| one file | train.txt, test.txt, Yf.txt, Xf.txt |

Filter files (filter_labels_train.txt, filter_labels_test.txt) name pairs of a document and a label
that are one and the same thing; they count neither as true nor as false.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mechdistill.data.sources.collection import Collection, SourceDocument, SourceLabel
from mechdistill.data.sources.counting import Tally
from mechdistill.data.sources.lines import (
    Entry,
    SingleFile,
    SparseFile,
    read_label_texts,
    read_names,
    read_pairs,
    read_texts,
)
from mechdistill.errors import InputError

HALVES = {"training": "trn", "test": "tst"}
_SINGLE = {"training": "train.txt", "test": "test.txt"}
_FILTERS = {"training": "filter_labels_train.txt", "test": "filter_labels_test.txt"}
_REMEDY = (
    "give as data.source.folder the unpacked data set: trn.json.gz, tst.json.gz and lbl.json.gz, "
    "or trn_X_Y.txt, trn_X_Xf.txt, tst_X_Y.txt, tst_X_Xf.txt with Yf.txt and Xf.txt, or train.txt "
    "and test.txt with Yf.txt and Xf.txt"
)


@dataclass(frozen=True)
class Row:
    """A document as its form tells it."""

    text: str
    labels: tuple[int, ...]


def files_of(folder: Path) -> dict[str, Path]:
    """The files of the form that is read, by name; InputError if none is there whole."""
    _, paths = form_of(folder)
    paths += [path for name in _FILTERS.values() if (path := folder / name).is_file()]
    return {path.name: path for path in paths}


def form_of(folder: Path) -> tuple[str, list[Path]]:
    """`raw text`, `sparse` or `one file`, the first that is there whole, and its files.

    Raises:
        InputError: none is.
    """
    if not folder.is_dir():
        raise InputError(f"data.source.folder is {folder}, which is no folder", _REMEDY)
    matrices = [f"{half}_X_{what}.txt" for half in HALVES.values() for what in ("Y", "Xf")]
    forms: dict[str, list[Path | None]] = {
        "raw text": [_raw(folder, name) for name in (*HALVES.values(), "lbl")],
        "sparse": [folder / name for name in (*matrices, "Yf.txt", "Xf.txt")],
        "one file": [folder / name for name in (*_SINGLE.values(), "Yf.txt", "Xf.txt")],
    }
    for form, paths in forms.items():
        there = [path for path in paths if path is not None and path.is_file()]
        if len(there) == len(paths):
            return form, there
    raise InputError(f"{folder} holds no form of the data set whole", _REMEDY)


def read_extreme(folder: Path) -> Collection:
    """Documents of both halves, and all labels, also those of no document.

    A code is a label's number in the files. Where there is no raw text, a document's text is the
    names of its features, those of largest value first.

    Raises:
        InputError: a file is missing or not as the format has it.
    """
    tally, (form, _) = Tally(), form_of(folder)
    titles = _titles(folder, form, tally)
    labels = {
        code_of(number): SourceLabel(code_of(number), "label", title)
        for number, title in enumerate(titles)
    }
    tally.add("labels", len(labels))
    tally.add("labels without a title", sum(not title for title in titles))
    return Collection(_documents(folder, form, len(titles), tally), labels, tally)


def check_extreme(folder: Path) -> Tally:
    """Read everything and keep nothing; what there is."""
    collection = read_extreme(folder)
    for _ in collection.documents:
        collection.tally.add("documents")
    return collection.tally


def code_of(number: int) -> str:
    """Code of the label of a number.

    >>> code_of(17)
    'L000017'
    """
    return f"L{number:06d}"


def _documents(folder: Path, form: str, labels: int, tally: Tally) -> Iterator[SourceDocument]:
    names = [] if form == "raw text" else list(read_names(folder / "Xf.txt", tally.warnings))
    for half, short in HALVES.items():
        filtered = _filtered(folder / _FILTERS[half], half, labels, tally)
        number = -1
        for number, row in enumerate(_rows(folder, form, half, labels, names, tally)):
            out = filtered.get(number, frozenset())
            true = tuple(dict.fromkeys(label for label in row.labels if label not in out))
            tally.add("pairs", len(true))
            if not row.text.strip():
                tally.add(f"{half} documents without a text, dropped")
            elif not true:
                tally.add(f"{half} documents without a label, dropped")
            else:
                yield _document(f"{short}-{number:07d}", half, row.text, true, out)
        tally.add(f"{half} documents", number + 1)
        if filtered and max(filtered) > number:
            raise InputError(
                f"{folder / _FILTERS[half]}: found document {max(filtered)}, expected a number "
                f"from 0 to {number}",
                "numbers count from 0; take all files of one release as they were published",
            )


def _document(
    name: str, half: str, text: str, true: tuple[int, ...], out: frozenset[int]
) -> SourceDocument:
    codes, filtered = tuple(map(code_of, true)), tuple(map(code_of, sorted(out)))
    return SourceDocument(name, name, half, text, codes, filtered)


def _rows(
    folder: Path, form: str, half: str, labels: int, names: list[str], tally: Tally
) -> Iterator[Row]:
    if form == "raw text":
        path = _raw(folder, HALVES[half])
        assert path is not None  # form_of has seen it
        for text in read_texts(path, labels):
            yield Row(f"{text.title}\n{text.content}".strip(), text.labels)
        return
    if form == "sparse":
        yield from _sparse_rows(folder, half, labels, names, tally)
        return
    single = SingleFile(folder / _SINGLE[half])
    for point in single:
        _require_shape(single.path, single.shape[1:], (len(names), labels))
        yield Row(_spelled(point.features, names), point.labels)


def _sparse_rows(
    folder: Path, half: str, labels: int, names: list[str], tally: Tally
) -> Iterator[Row]:
    true = SparseFile(folder / f"{HALVES[half]}_X_Y.txt")
    features = SparseFile(folder / f"{HALVES[half]}_X_Xf.txt")
    try:
        for related, told in zip(true, features, strict=True):
            _require_shape(true.path, true.shape[1:], (labels,))
            _require_shape(features.path, features.shape[1:], (len(names),))
            yield Row(_spelled(told, names), tuple(label for label, _ in related))
    except ValueError:  # of zip: one ended before the other
        raise InputError(
            f"{true.path} has {true.shape[0]} rows, {features.path.name} has {features.shape[0]}",
            "take all files of one release as they were published",
        ) from None
    tally.warnings += [*true.warnings, *features.warnings]


def _titles(folder: Path, form: str, tally: Tally) -> list[str]:
    if form != "raw text":
        return list(read_names(folder / "Yf.txt", tally.warnings))
    path = _raw(folder, "lbl")
    assert path is not None  # form_of has seen it
    return list(read_label_texts(path))


def _filtered(path: Path, half: str, labels: int, tally: Tally) -> Mapping[int, frozenset[int]]:
    """Document number -> labels to leave out; none where the file is missing or empty."""
    if not path.is_file():
        tally.warnings.append(f"{path} is not there: no pair of that half is left out")
        return {}
    found: dict[int, set[int]] = {}
    for document, label in read_pairs(path, labels):
        found.setdefault(document, set()).add(label)
        tally.add(f"{half} pairs left out (filter file)")
    return {document: frozenset(out) for document, out in found.items()}


def _raw(folder: Path, name: str) -> Path | None:
    paths = (folder / f"{name}{ending}" for ending in (".json.gz", ".raw.json.gz"))
    return next((path for path in paths if path.is_file()), None)


def _spelled(features: tuple[Entry, ...], names: list[str]) -> str:
    """Names of features, those of largest value first, then by number."""
    ordered = sorted(features, key=lambda entry: (-entry[1], entry[0]))
    return " ".join(names[index] for index, _ in ordered)


def _require_shape(path: Path, found: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if found != expected:
        raise InputError(
            f"{path}, first line: found {' '.join(map(str, found))} columns, expected "
            f"{' '.join(map(str, expected))} by the files of names",
            "take all files of one release as they were published",
        )
