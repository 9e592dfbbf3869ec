"""Results without Snakemake's notes are refused, everything else is let pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from mechdistill.errors import InputError
from mechdistill.provenance.metadata import INCOMPLETE, METADATA, note_path, refuse_unrecorded_results

SHORT = Path("results/tiny/a.parquet")
LONG = Path(f"results/tiny/{'b' * 200}.parquet")


def write(root: Path, *paths: Path) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("{}")


def test_recorded_results_pass(tmp_path: Path) -> None:
    write(tmp_path, SHORT, LONG, note_path(METADATA, SHORT), note_path(METADATA, LONG))
    refuse_unrecorded_results(tmp_path, "tiny")


def test_nothing_there_passes(tmp_path: Path) -> None:
    refuse_unrecorded_results(tmp_path, "tiny")


def test_unrecorded_result_is_refused_with_both_remedies(tmp_path: Path) -> None:
    write(tmp_path, SHORT, LONG, note_path(METADATA, LONG))
    with pytest.raises(InputError, match=r"a\.parquet has no record") as error:
        refuse_unrecorded_results(tmp_path, "tiny")
    assert "git checkout provenance/metadata" in error.value.remedy
    assert "rm -r results/tiny" in error.value.remedy


def test_output_of_a_job_that_was_cut_off_passes(tmp_path: Path) -> None:
    write(tmp_path, SHORT, note_path(INCOMPLETE, SHORT), Path("results/tiny/.a.1.partial.parquet"))
    refuse_unrecorded_results(tmp_path, "tiny")


@pytest.mark.parametrize("left", ["", '{"rule": "make_ta'])
def test_note_that_a_power_cut_left_half_written_is_named(tmp_path: Path, left: str) -> None:
    write(tmp_path, SHORT, LONG, note_path(METADATA, SHORT), note_path(METADATA, LONG))
    (tmp_path / note_path(METADATA, SHORT)).write_text(left)
    with pytest.raises(InputError, match=r"note on results/tiny/a\.parquet is cut off") as error:
        refuse_unrecorded_results(tmp_path, "tiny")
    assert "rm results/tiny/a.parquet" in error.value.remedy


def test_other_studies_do_not_matter(tmp_path: Path) -> None:
    write(tmp_path, SHORT)
    refuse_unrecorded_results(tmp_path, "other")
