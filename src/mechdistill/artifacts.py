"""Read and write the files that rules exchange: Parquet, safetensors, JSON and text.

Every file is written under a temporary name in its own folder and then renamed, so that a file
that exists is whole. Tables, tensors and JSON carry the number of their format; a file of
another format is refused with a message instead of being misread.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mechdistill.errors import InputError

if TYPE_CHECKING:  # heavy: imported where used, so that the workflow's start stays fast
    import pandas as pd
    from torch import Tensor

FORMAT = 1
"""Raise it when a column or key changes its meaning."""

RESULTS = "results"
"""Results of the study NAME lie in results/NAME."""
BASE_STUDY = "embedded"
"""The study of params.yaml, which Snakemake takes unless told another."""

_FORMAT_KEY = "mechdistill_format"
_TENSORS_KEY = "mechdistill"


def how_to_make(path: str | Path) -> str:
    """What to do about a file that is missing or cannot be used: the command that makes it.

    >>> how_to_make("results/smoke/heads/pools.json")
    'make it: snakemake --cores 2 results/smoke/heads/pools.json --config study=smoke'
    """
    path = Path(path)
    command = f"snakemake --cores 2 {_making(path)}"
    if path.is_dir():
        return f"move it away and make the file: {command}"
    if path.exists() or path.is_symlink():
        return f"delete it and make it again: rm {shlex.quote(str(path))} && {command}"
    return f"make it: {command}"


def _making(path: Path) -> str:
    """The target as the rules name it, and the study that it belongs to.

    The study comes last: Snakemake would take what follows `--config` for another of its values.
    """
    parts = path.parts
    if RESULTS not in parts[:-2]:
        return shlex.quote(str(path))
    at = parts.index(RESULTS)
    target, study = shlex.quote(str(Path(*parts[at:]))), parts[at + 1]
    return target if study == BASE_STUDY else f"{target} --config study={shlex.quote(study)}"


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; move it to `path` when the block ends well.

    The temporary name keeps the suffix, since writers such as `savefig` go by it.

    Raises:
        InputError: the disk is full or the folder cannot be written.
    """
    path = Path(path)
    temporary = path.with_name(partial_name(path, str(os.getpid())))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _flush_to_disk(temporary)
        os.replace(temporary, path)
    except Exception as error:
        explained = _explain_write_failure(path, error)
        if explained is None:
            raise
        raise explained from error
    finally:
        with suppress(OSError):  # its folder was never made, or takes no change at all
            temporary.unlink(missing_ok=True)


def partial_name(path: Path, process: str) -> str:
    """File name of `path` while `process` (its id, or `*` for any) is writing it."""
    return f".{path.stem}.{process}.partial{path.suffix}"


def write_table(path: str | Path, frame: pd.DataFrame) -> None:
    """Write `frame` as Parquet; its index is dropped, equal frames give equal bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    stamped = {**(table.schema.metadata or {}), _FORMAT_KEY.encode(): str(FORMAT).encode()}
    with replacing(path) as temporary:
        pq.write_table(table.replace_schema_metadata(stamped), temporary, compression="zstd")


def read_table(
    path: str | Path, columns: Sequence[str] | None = None, *, may_be_empty: bool = False
) -> pd.DataFrame:
    """Read a Parquet table, all columns or the named ones.

    Args:
        may_be_empty: a table without rows is a result (a student that never decides has no
            curve), not the remains of one.

    Raises:
        InputError: the file is missing, truncated, of another format, lacks a column, or has no
            rows though it must have some.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = _existing(path)
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            _check_format(path, (schema.metadata or {}).get(_FORMAT_KEY.encode()))
            missing = [name for name in columns or () if name not in schema.names]
            if missing:
                raise InputError(
                    f"{path} has no column {', '.join(missing)} (it has {', '.join(schema.names)})",
                    how_to_make(path),
                )
            frame: pd.DataFrame = file.read(columns=columns and list(columns)).to_pandas()
    except (pa.ArrowInvalid, OSError) as error:
        raise _damaged(path, "Parquet", error) from error
    if frame.empty and not may_be_empty:
        raise InputError(f"{path} has no rows", how_to_make(path))
    return frame if columns is None else frame[list(columns)]


def plain(value: Any) -> Any:
    """A table's value without numpy: arrays become tuples, as deep as they go, scalars Python's."""
    import numpy as np

    if isinstance(value, np.ndarray | list | tuple):
        return tuple(plain(item) for item in value)
    return value.item() if isinstance(value, np.generic) else value


def write_tensors(
    path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write named tensors and text metadata as safetensors."""
    from safetensors.torch import save_file

    # one key: safetensors writes several in an order that changes from run to run;
    # a contiguous copy of its own: safetensors refuses tensors that share storage
    stamped = {**(metadata or {}), _FORMAT_KEY: str(FORMAT)}
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with replacing(path) as temporary:
        save_file(plain, temporary, {_TENSORS_KEY: json.dumps(stamped, sort_keys=True)})


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read the tensors of a safetensors file and its metadata.

    Raises:
        InputError: the file is missing, truncated or of another format.
    """
    from safetensors import SafetensorError, safe_open

    path = _existing(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = json.loads((file.metadata() or {}).get(_TENSORS_KEY, "{}"))
            _check_format(path, metadata.pop(_FORMAT_KEY, None))
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    except (SafetensorError, OSError) as error:
        raise _damaged(path, "safetensors", error) from error
    return tensors, metadata


def write_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write a mapping as JSON, keys in the order given, NaN refused."""
    stamped = {_FORMAT_KEY: FORMAT, **content}
    write_text(path, json.dumps(stamped, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | Path) -> dict[str, Any]:
    """Read a mapping that `write_json` wrote.

    Raises:
        InputError: the file is missing, truncated or of another format.
    """
    path = _existing(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise _damaged(path, "JSON", error) from error
    if not isinstance(content, dict):
        raise _damaged(path, "JSON", f"a mapping is expected, found {type(content).__name__}")
    _check_format(path, content.pop(_FORMAT_KEY, None))
    return content


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_text(path: str | Path) -> str:
    """Read UTF-8 text.

    Raises:
        InputError: the file is missing or not UTF-8.
    """
    path = _existing(path)
    try:
        return path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError) as error:
        raise _damaged(path, "UTF-8 text", error) from error


def _existing(path: str | Path) -> Path:
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a directory, a file is expected", how_to_make(path))
    if not path.is_file():
        raise InputError(f"{path} is missing", how_to_make(path))
    return path


def _check_format(path: Path, found: bytes | str | int | None) -> None:
    text = found.decode() if isinstance(found, bytes) else str(found)
    if found is None:
        raise InputError(f"{path} carries no format number of mechdistill", how_to_make(path))
    if text != str(FORMAT):
        raise InputError(
            f"{path} has format {text}, this version of mechdistill reads format {FORMAT}",
            f"check out the version that wrote it, or {how_to_make(path)}",
        )


def _damaged(path: Path, kind: str, reason: object) -> InputError:
    first_line = str(reason).splitlines()[0] if str(reason) else type(reason).__name__
    return InputError(
        f"{path} is truncated or damaged: it cannot be read as {kind} ({first_line})",
        how_to_make(path),
    )


def _explain_write_failure(path: Path, error: Exception) -> InputError | None:
    """The disk's own trouble as a message; None for any other error."""
    number = error.errno if isinstance(error, OSError) else None
    # safetensors and Arrow do not always pass errno on
    if number in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error):
        return InputError(
            f"the disk is full: {path} could not be written",
            f"free some space on the disk of {path.parent} and start the same command again; "
            "what was finished is kept",
        )
    if number in (errno.EACCES, errno.EROFS, errno.EPERM):
        return InputError(f"{path} could not be written: {error}", f"make {path.parent} writable")
    if number in (errno.EISDIR, errno.ENOTDIR, errno.EEXIST):
        return InputError(
            f"{path} could not be written: {error}",
            f"move away the directory that stands at {path}, or the file that stands where a "
            "folder above it belongs",
        )
    return None


def _flush_to_disk(path: Path) -> None:
    """Bytes reach the disk before the name does: a power cut leaves no empty file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
