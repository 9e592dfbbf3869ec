"""Artifacts: whole or absent, equal bytes for equal content, one clear message otherwise."""

from __future__ import annotations

import errno
import json
import os
import shlex
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from mechdistill import artifacts
from mechdistill.errors import InputError

FRAME = pd.DataFrame(
    {"head": [0, 1, 2], "value": [0.5, float("nan"), -1.0], "text": ["a", "ä", ""]}
)


def test_table_round_trips(tmp_path: Path) -> None:
    artifacts.write_table(tmp_path / "new" / "a.parquet", FRAME)
    pd.testing.assert_frame_equal(artifacts.read_table(tmp_path / "new" / "a.parquet"), FRAME)


def test_table_drops_the_index_and_reads_columns_in_the_order_asked(tmp_path: Path) -> None:
    artifacts.write_table(tmp_path / "a.parquet", FRAME.set_index(pd.Index([5, 6, 7])))
    frame = artifacts.read_table(tmp_path / "a.parquet", columns=["value", "head"])
    assert list(frame.columns) == ["value", "head"]
    assert list(frame.index) == [0, 1, 2]


def test_list_columns_round_trip(tmp_path: Path) -> None:
    frame = pd.DataFrame({"gold": [["I50.21"], [], ["J45.1", "E11.9"]]})
    artifacts.write_table(tmp_path / "a.parquet", frame)
    back = artifacts.read_table(tmp_path / "a.parquet")
    assert [list(row) for row in back["gold"]] == [["I50.21"], [], ["J45.1", "E11.9"]]


def test_equal_frames_give_equal_bytes(tmp_path: Path) -> None:
    artifacts.write_table(tmp_path / "a.parquet", FRAME)
    artifacts.write_table(tmp_path / "b.parquet", FRAME.copy())
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_tensors_round_trip_also_views_and_shared_storage(tmp_path: Path) -> None:
    weight = torch.arange(6.0).reshape(2, 3)
    artifacts.write_tensors(tmp_path / "a.safetensors", {"w": weight, "t": weight.T}, {"k": "v"})
    tensors, metadata = artifacts.read_tensors(tmp_path / "a.safetensors")
    assert torch.equal(tensors["w"], weight) and torch.equal(tensors["t"], weight.T)
    assert metadata == {"k": "v"}


def test_equal_tensors_and_metadata_give_equal_bytes(tmp_path: Path) -> None:
    metadata = {f"key{number}": "v" for number in range(20)}
    for name, order in (("a", metadata), ("b", dict(reversed(metadata.items())))):
        artifacts.write_tensors(tmp_path / name, {"w": torch.ones(3)}, order)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_json_round_trips_and_refuses_nan(tmp_path: Path) -> None:
    artifacts.write_json(tmp_path / "a.json", {"b": [1, 2.5], "a": {"ä": None}})
    assert artifacts.read_json(tmp_path / "a.json") == {"b": [1, 2.5], "a": {"ä": None}}
    with pytest.raises(ValueError):
        artifacts.write_json(tmp_path / "b.json", {"x": float("nan")})
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


WRITERS = {
    "a.parquet": lambda path: artifacts.write_table(path, FRAME),
    "a.safetensors": lambda path: artifacts.write_tensors(path, {"w": torch.ones(50)}),
    "a.json": lambda path: artifacts.write_json(path, {"a": list(range(50))}),
}
READERS = {
    "a.parquet": artifacts.read_table,
    "a.safetensors": artifacts.read_tensors,
    "a.json": artifacts.read_json,
}


def test_a_file_of_another_study_is_made_with_that_study(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = "snakemake --cores 2 results/smoke/heads/pools.json --config study=smoke"
    path = Path("results/smoke/heads/pools.json")
    assert artifacts.how_to_make(path) == f"make it: {made}"
    assert artifacts.how_to_make(tmp_path / path) == f"make it: {made}"
    path.parent.mkdir(parents=True)
    path.touch()
    again = f"delete it and make it again: rm {path} && {made}"
    assert artifacts.how_to_make(path) == again
    path.unlink()
    path.mkdir()
    assert artifacts.how_to_make(path) == f"move it away and make the file: {made}"
    base = "results/embedded/a.json"
    assert artifacts.how_to_make(base) == f"make it: snakemake --cores 2 {base}"


def test_a_remedy_can_be_pasted_whatever_the_path(tmp_path: Path) -> None:
    path = tmp_path / "my results;" / "a b.json"
    path.parent.mkdir()
    path.touch()
    _, _, command = artifacts.how_to_make(path).partition(": ")
    removal, _, making = command.partition(" && ")
    assert shlex.split(removal) == ["rm", str(path)]
    assert shlex.split(making) == ["snakemake", "--cores", "2", str(path)]


@pytest.mark.parametrize("name", WRITERS)
def test_missing_file_says_how_to_make_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=rf"{name} is missing\n.*snakemake"):
        READERS[name](tmp_path / name)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.98])
def test_truncated_file_is_named(tmp_path: Path, name: str, kept: float) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(InputError, match=rf"{name} is truncated or damaged.*\n.*delete it"):
        READERS[name](path)


def test_file_of_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "FORMAT", 99)
    for name, write in WRITERS.items():
        write(tmp_path / name)
    monkeypatch.undo()
    for name, read in READERS.items():
        with pytest.raises(InputError, match=f"{name} has format 99"):
            read(tmp_path / name)


def test_foreign_file_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    (tmp_path / "a.json").write_text(json.dumps({"a": 1}))
    for name in ("a.parquet", "a.json"):
        with pytest.raises(InputError, match="carries no format number"):
            READERS[name](tmp_path / name)


def test_missing_column_is_named(tmp_path: Path) -> None:
    artifacts.write_table(tmp_path / "a.parquet", FRAME)
    with pytest.raises(InputError, match="no column layer"):
        artifacts.read_table(tmp_path / "a.parquet", columns=["head", "layer"])


def test_table_without_rows_is_refused_unless_it_may_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    artifacts.write_table(path, FRAME[:0])
    for columns in (None, ["head"]):
        with pytest.raises(InputError, match=r"a\.parquet has no rows\n.*delete it.*rm "):
            artifacts.read_table(path, columns)
        assert artifacts.read_table(path, columns, may_be_empty=True).empty


@pytest.mark.parametrize("name", WRITERS)
def test_directory_and_file_in_each_other_s_place_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=rf"{name} is a directory"):
        READERS[name](tmp_path / name)
    for path in (tmp_path / name, tmp_path / "file" / name, tmp_path / "file" / "sub" / name):
        with pytest.raises(InputError, match=rf"{name} could not be written.*\n.*move away"):
            WRITERS[name](path)


def test_failed_write_keeps_the_old_file_and_leaves_no_rubbish(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    artifacts.write_text(path, "old")
    with pytest.raises(RuntimeError), artifacts.replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_temporary_name_keeps_the_suffix(tmp_path: Path) -> None:
    with artifacts.replacing(tmp_path / "figure1.pdf") as temporary:
        assert temporary.suffix == ".pdf"
        temporary.write_text("x")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("No space left on device (28)"),
    ],
)
def test_full_disk_is_one_clear_message(tmp_path: Path, error: Exception) -> None:
    with (
        pytest.raises(InputError, match=r"disk is full: .*a\.txt.*\n.*free some space"),
        artifacts.replacing(tmp_path / "a.txt"),
    ):
        raise error


def test_read_only_folder_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", refuse)  # such a disk refuses even what is not there
    with (
        pytest.raises(InputError, match=r"could not be written: .* Read-only file system") as error,
        artifacts.replacing(tmp_path / "table.parquet"),
    ):
        refuse()
    assert "writable" in error.value.remedy
