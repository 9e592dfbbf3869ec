from pathlib import Path

import pytest

from mechdistill.errors import InputError
from mechdistill.traces.store import read_traces, write_traces


def test_traces_survive_the_file(examples, parse, tmp_path: Path) -> None:
    traces = [parse(example, example.reference + " <eos>") for example in examples]
    traces += [parse(examples[0], "gout <eos>"), parse(examples[1], "")]
    write_traces(tmp_path / "traces.parquet", traces)
    assert read_traces(tmp_path / "traces.parquet") == traces
    ranking = [trace for trace in traces if trace.split == "ranking"]
    assert read_traces(tmp_path / "traces.parquet", "ranking") == ranking


def test_traces_with_nothing_to_parse_survive_too(examples, parse, tmp_path: Path) -> None:
    traces = [parse(examples[0], "")]
    write_traces(tmp_path / "traces.parquet", traces)
    assert read_traces(tmp_path / "traces.parquet") == traces


def test_a_split_without_traces_is_named(examples, parse, tmp_path: Path) -> None:
    write_traces(tmp_path / "traces.parquet", [parse(examples[0], "")])
    with pytest.raises(InputError, match="'test'"):
        read_traces(tmp_path / "traces.parquet", "test")


def test_equal_traces_give_equal_bytes(examples, parse, tmp_path: Path) -> None:
    traces = [parse(example, example.reference + " <eos>") for example in examples]
    write_traces(tmp_path / "one.parquet", traces)
    write_traces(tmp_path / "two.parquet", traces)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
