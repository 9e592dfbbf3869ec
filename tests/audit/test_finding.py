"""Codes are stable, documented, and the verdict is clean only without findings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mechdistill.audit.finding import CODES, Finding, Verdict

DOCS = Path(__file__).resolve().parents[2] / "docs/audit.md"


def verdict(*findings: Finding) -> Verdict:
    return Verdict("tiny", findings, jobs=1, files=2, bytes=3, seconds=0.1)


def test_every_code_has_one_line_in_the_documentation() -> None:
    lines = re.findall(r"^\| ([A-Z-]+) \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert lines == list(CODES)


def test_unknown_code_is_refused() -> None:
    with pytest.raises(KeyError, match="NONSENSE"):
        Finding("NONSENSE", "a", "b", "c")


def test_text_names_code_place_fact_and_remedy() -> None:
    text = str(verdict(Finding("ORPHAN", "results/tiny/x", "nobody made it", "delete it")))
    for part in ("ORPHAN", "results/tiny/x", "nobody made it", "delete it", "1 finding"):
        assert part in text


def test_clean_only_without_findings() -> None:
    assert verdict().clean
    assert verdict().to_json()["clean"] is True
    assert not verdict(Finding("CLOCK", "a", "b", "c")).clean
