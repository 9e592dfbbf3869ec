"""Published splits of the MIMIC data sets: which part an admission is in."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyarrow import feather

from mechdistill.data.sources.found import length_of
from mechdistill.errors import InputError

IV_FILE = "mimiciv_icd10_split.feather"
III_FILES = {
    "train_full_hadm_ids.csv": "training",
    "dev_full_hadm_ids.csv": "validation",
    "test_full_hadm_ids.csv": "test",
}
_IV_NAMES = {"train": "training", "val": "validation", "test": "test"}


def read_iii_split(folder: Path) -> Mapping[int, str]:
    """Admission -> part, from three lists of admissions, one a line, without a header.

    Raises:
        InputError: a list is missing, a line is no number, an admission is in two lists.
    """
    parts: dict[int, str] = {}
    for name, part in III_FILES.items():
        path = _existing(folder / name)
        for row, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
            if not line.strip().isdecimal():
                raise InputError(
                    f"{path}, line {row}: found {length_of(line.strip())}, expected a hadm_id",
                    "one hadm_id a line, no header",
                )
            _put(parts, int(line), part, f"{path}, line {row}")
    return parts


def read_iv_split(folder: Path) -> Mapping[int, str]:
    """Admission -> part, from the table with the columns `_id` and `split`.

    Raises:
        InputError: the file is missing or no Feather file, a column is missing, a split has another
            name, an admission is in two.
    """
    path = _existing(folder / IV_FILE)
    try:
        table = feather.read_table(path, columns=["_id", "split"])
    except (pa.ArrowInvalid, KeyError, OSError) as error:
        raise InputError(
            f"{path} is no Feather table with the columns _id and split",
            "fetch the published file again",
        ) from error
    parts: dict[int, str] = {}
    rows = zip(table["_id"].to_pylist(), table["split"].to_pylist(), strict=True)
    for row, (admission, name) in enumerate(rows, start=1):
        if not isinstance(admission, int) or name not in _IV_NAMES:
            raise InputError(
                f"{path}, row {row}: expected a whole number as _id, and train, val or test as "
                "split",
                "fetch the published file again",
            )
        _put(parts, admission, _IV_NAMES[name], f"{path}, row {row}")
    return parts


def _put(parts: dict[int, str], admission: int, part: str, where: str) -> None:
    if parts.setdefault(admission, part) != part:
        raise InputError(
            f"{where}: this admission is in {parts[admission]} and in {part}",
            "fetch the published split again",
        )


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError(
            f"{path} is missing",
            "put the published split there, or set data.source.split_folder to null",
        )
    return path
