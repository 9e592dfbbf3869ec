from __future__ import annotations

from pathlib import Path

import pytest

from mechdistill.errors import InputError
from mechdistill.yaml_mapping import read_yaml_mapping


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "values.yaml"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e-3", 0.001),
        ("1E5", 1e5),
        ("-2.5e+3", -2500.0),
        ("1.0e-3", 0.001),
        ("3", 3),
        ("x1e3", "x1e3"),
    ],
)
def test_numbers_with_an_exponent_are_numbers(file: Path, written: str, value: object) -> None:
    file.write_text(f"rate: {written}\n")
    read = read_yaml_mapping(file)["rate"]
    assert read == value
    assert type(read) is type(value)


def test_an_empty_file_is_an_empty_mapping(file: Path) -> None:
    file.write_text("# nothing yet\n")
    assert read_yaml_mapping(file) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2\nb: 3\n", "malformed YAML at line 2"),
        ("a: 1\n\tb: 2\n", "malformed YAML"),
        ("a:\n  b: 1\n  b: 2\n", "line 3.*'b' is given twice"),
        ("a:\n  on: 1\n", "line 2.*'on' is no text"),
        ("1: 2\n", "'1' is no text"),
        ("- 1\n- 2\n", "holds a list, not a mapping"),
        ("a: !!python/object:os.system {}\n", "malformed YAML"),
        ("a: \x00\n", "malformed YAML"),
    ],
)
def test_a_bad_file_is_named_with_the_place(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match=rf"values\.yaml.*{message}"):
        read_yaml_mapping(file)


def test_a_missing_file_is_named(file: Path) -> None:
    with pytest.raises(InputError, match=r"values\.yaml does not exist"):
        read_yaml_mapping(file)


def test_a_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        read_yaml_mapping(tmp_path)


def test_a_file_that_is_no_text_is_named(file: Path) -> None:
    file.write_bytes(b"a: \xff\xfe\n")
    with pytest.raises(InputError, match=r"values\.yaml is not UTF-8"):
        read_yaml_mapping(file)
