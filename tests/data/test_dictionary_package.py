"""Apt and dpkg are stood in for by small programs on an otherwise empty path."""

from pathlib import Path

import pytest

from mechdistill.data import dictionary_package
from mechdistill.data.dictionary_package import cache_folder, find_dictionary
from mechdistill.errors import InputError
from tests.made_dictionary import write_made_dictionary


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without the package; returns the folder of its programs."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setattr(dictionary_package, "INSTALLED", tmp_path / "not-there")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(programs))
    return programs


def program(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{body}\n")
    path.chmod(0o755)


def test_the_installed_package_comes_first(
    tmp_path: Path, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_made_dictionary(tmp_path / "installed")
    monkeypatch.setattr(dictionary_package, "INSTALLED", tmp_path / "installed")
    assert find_dictionary(None) == tmp_path / "installed"


def test_without_apt_the_error_names_package_and_remedy(nowhere: Path) -> None:
    with pytest.raises(InputError) as error:
        find_dictionary(None)
    assert "dict-foldoc is not installed" in error.value.what
    assert "apt-get and dpkg-deb" in error.value.what
    assert "apt-get install dict-foldoc" in error.value.remedy
    assert "data.foldoc.folder" in error.value.remedy


def test_the_package_is_fetched_once_and_kept(tmp_path: Path, nowhere: Path) -> None:
    write_made_dictionary(tmp_path / "made")
    program(nowhere, "apt-get", f'echo "$@" >> {tmp_path}/calls; touch dict-foldoc_1_all.deb')
    program(
        nowhere,
        "dpkg-deb",
        f'mkdir -p "$3/usr/share/dictd"; cp {tmp_path}/made/* "$3/usr/share/dictd"',
    )
    found = find_dictionary(None)
    assert found == cache_folder() / "usr/share/dictd"
    assert find_dictionary(None) == found
    assert (tmp_path / "calls").read_text() == "download dict-foldoc\n"
    assert [path.name for path in cache_folder().parent.iterdir()] == ["dict-foldoc"]


def test_what_apt_says_is_in_the_error(nowhere: Path) -> None:
    program(nowhere, "apt-get", "echo 'E: Unable to locate package dict-foldoc' >&2; exit 100")
    program(nowhere, "dpkg-deb", "")
    with pytest.raises(InputError, match="Unable to locate package"):
        find_dictionary(None)
    assert list(cache_folder().parent.iterdir()) == []


def test_a_named_folder_is_the_only_place(tmp_path: Path, nowhere: Path) -> None:
    write_made_dictionary(tmp_path / "made")
    assert find_dictionary(str(tmp_path / "made")) == tmp_path / "made"
    with pytest.raises(InputError, match=r"data\.foldoc\.folder is .*nothing"):
        find_dictionary(str(tmp_path / "nothing"))
