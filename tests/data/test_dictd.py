import base64
import gzip
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.data.dictd import digits_of, number_of, read_dictionary
from mechdistill.errors import InputError
from tests.made_dictionary import entries, write_made_dictionary


@given(st.integers(0, 2**40))
def test_digits_are_those_of_base_64_most_significant_first(number: int) -> None:
    """The standard library's base 64 of the number's bytes, cut in groups of six bits."""
    padded = number.to_bytes(6, "big")
    expected = base64.b64encode(padded).decode().lstrip("A") or "A"
    assert digits_of(number) == expected
    assert number_of(expected) == number


def test_entries_are_read_as_they_were_written(tmp_path: Path) -> None:
    sha256 = write_made_dictionary(tmp_path)
    read = read_dictionary(tmp_path, "foldoc", sha256)
    written = entries()[1:]  # the first one is about the dictionary
    assert [entry.text for entry in read] == [text for _, text in written]
    assert [set(entry.headwords) for entry in read] == [set(names) for names, _ in written]


def test_offsets_count_bytes(tmp_path: Path) -> None:
    texts = ["naïve\n\n   Ünïcode.\n\n", "next\n\n   Text.\n\n"]
    first, second = (text.encode() for text in texts)
    packed = gzip.compress(first + second)
    (tmp_path / "small.dict.dz").write_bytes(packed)
    lines = [
        f"naïve\tA\t{digits_of(len(first))}",
        f"next\t{digits_of(len(first))}\t{digits_of(len(second))}",
    ]
    (tmp_path / "small.index").write_text("\n".join(lines), encoding="utf-8")
    read = read_dictionary(tmp_path, "small", hashlib.sha256(packed).hexdigest())
    assert [entry.text for entry in read] == texts


def test_another_edition_is_refused_with_its_hash(tmp_path: Path) -> None:
    sha256 = write_made_dictionary(tmp_path, seed=1)
    with pytest.raises(InputError, match=sha256):
        read_dictionary(tmp_path, "foldoc", "0" * 64)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("word\tA", "no headword, offset and length"),
        ("word\tA\t?", "no headword, offset and length"),
        ("word\tA\t/////", "ends behind"),
    ],
)
def test_a_damaged_index_names_its_line(tmp_path: Path, line: str, named: str) -> None:
    sha256 = write_made_dictionary(tmp_path)
    index = tmp_path / "foldoc.index"
    index.write_text("first\tA\tB\n" + line + "\n")
    with pytest.raises(InputError, match=f"line 2.*{named}"):
        read_dictionary(tmp_path, "foldoc", sha256)


def test_truncated_data_are_an_error(tmp_path: Path) -> None:
    write_made_dictionary(tmp_path)
    data = tmp_path / "foldoc.dict.dz"
    cut = data.read_bytes()[:-100]
    data.write_bytes(cut)
    with pytest.raises(InputError, match="cannot be unpacked"):
        read_dictionary(tmp_path, "foldoc", hashlib.sha256(cut).hexdigest())


def test_a_missing_index_is_named(tmp_path: Path) -> None:
    sha256 = write_made_dictionary(tmp_path)
    (tmp_path / "foldoc.index").unlink()
    with pytest.raises(InputError, match=r"foldoc\.index cannot be read"):
        read_dictionary(tmp_path, "foldoc", sha256)
