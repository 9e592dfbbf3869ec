"""Data that cannot be had are told in one line, with what to do; the rest is looked for only."""

from __future__ import annotations

from pathlib import Path

import pytest

from mechdistill.data import dictionary_package
from mechdistill.data.obtainable import why_not_here


def test_drawn_notes_need_nothing() -> None:
    assert why_not_here({"world": {"name": "icd"}}) == ""


def test_a_dictionary_without_package_and_apt_is_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dictionary_package, "INSTALLED", tmp_path / "nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(dictionary_package.shutil, "which", lambda tool: None)
    said = why_not_here({"foldoc": {"folder": None}})
    assert said.startswith("the package dict-foldoc is not installed, and apt-get and dpkg-deb")
    assert "What to do: on Debian or Ubuntu run `apt-get install dict-foldoc`" in said
    assert "\n" not in said


def test_documents_of_a_user_need_their_folder(tmp_path: Path) -> None:
    assert why_not_here({"source": {"folder": str(tmp_path)}}) == ""
    assert "is no folder. What to do: put" in why_not_here({"source": {"folder": "nowhere"}})
