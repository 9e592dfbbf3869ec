"""A number's origin, on records of a small invented study."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from rich.console import Console

from mechdistill.audit.record import all_records, read_records
from mechdistill.audit.trace import as_plain, as_tree, find_cell, relative_path, trace_file
from mechdistill.errors import InputError

from .made_records import write_job

NOTES, SCORES, TABLE, FIGURE = (
    f"results/tiny/{name}" for name in ("notes.json", "scores.csv", "table.csv", "figure.png")
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "results/tiny").mkdir(parents=True)
    for path, content in (
        (NOTES, "[]"),
        (SCORES, "method,f1\nmech,0.5\n"),
        (TABLE, "method,metric,value\nmech,f1,0.5\nmech,f1_macro,0.4\nvanilla,f1,0.3\n"),
        (FIGURE, "a picture"),
        ("world.txt", "outside"),
    ):
        (tmp_path / path).write_text(content, encoding="utf-8")
    write_job(tmp_path, "make_notes", ["world.txt"], [NOTES], seed=7)
    write_job(tmp_path, "score", [NOTES], [SCORES])
    write_job(tmp_path, "draw", [SCORES, NOTES], [TABLE, FIGURE])
    return tmp_path


def test_every_job_and_file_behind_a_table_is_named_once(root):
    origin = trace_file(read_records(root, "tiny")[0], root, TABLE)
    assert [job.rule for job in origin.jobs()] == ["draw", "score", "make_notes"]
    assert {file.path for file in origin.files()} == {TABLE, SCORES, NOTES, "world.txt"}
    assert {file.now for file in origin.files()} == {"as recorded"}
    plain = json.loads(json.dumps(as_plain(origin)))
    assert plain["jobs"][2]["parameters"] == {"seed": 7}
    assert plain["files"][NOTES]["sha256"] == hashlib.sha256(b"[]").hexdigest()


def test_what_was_changed_or_is_gone_is_marked(root):
    (root / SCORES).write_text("method,f1\nmech,0.6\n", encoding="utf-8")
    (root / "world.txt").unlink()
    origin = trace_file(read_records(root, "tiny")[0], root, TABLE)
    states = {file.path: file.now for file in origin.files()}
    assert states[SCORES] == "other bytes"
    assert states["world.txt"] == "missing"
    assert states[NOTES] == "as recorded"


def test_the_tree_shows_value_hashes_parameters_and_what_lies_outside(root):
    name, value = find_cell(root / TABLE, "vanilla value")
    console = Console(width=200, record=True, file=(root / "out").open("w"))
    origin = trace_file(read_records(root, "tiny")[0], root, TABLE)
    console.print(as_tree(origin, f"{name} = {value}"))
    text = console.export_text()
    assert text.startswith("vanilla, f1: value = 0.3\n")
    for part in ("by draw", "seed = 7", "commit c0ffee", "world.txt", "from outside", "see above"):
        assert part in text
    assert hashlib.sha256(b"[]").hexdigest()[:12] in text


def test_a_file_whose_record_is_gone_is_not_taken_for_one_from_outside(root):
    (root / "provenance/runs/tiny/score.json").unlink()
    console = Console(width=200, record=True, file=(root / "out").open("w"))
    console.print(as_tree(trace_file(read_records(root, "tiny")[0], root, TABLE), TABLE))
    (line,) = (line for line in console.export_text().splitlines() if SCORES in line)
    assert "no record" in line
    assert "outside" not in line


def test_a_cell_is_found_by_name_or_words_and_an_unclear_one_lists_the_choices(root):
    assert find_cell(root / TABLE, "mech, f1: value") == ("mech, f1: value", 0.5)
    assert find_cell(root / TABLE, "MECH macro value") == ("mech, f1_macro: value", 0.4)
    with pytest.raises(InputError, match="2 cells") as unclear:
        find_cell(root / TABLE, "mech value")
    assert "mech, f1_macro: value" in unclear.value.remedy
    with pytest.raises(InputError, match="no cells"):
        find_cell(root / TABLE, "morsd")
    with pytest.raises(InputError, match="has no cells"):
        find_cell(root / FIGURE, "anything")


def test_points_of_a_figure_stand_in_the_file_beside_it(root):
    (root / FIGURE).with_suffix(".csv").write_text("line,point,value\nmech,t 0.5,0.25\n")
    assert find_cell(root / FIGURE, "mech 0.5 value") == ("mech, t 0.5: value", 0.25)


def test_a_joined_study_is_traced_into_its_members(root):
    table = "results/joined/table.csv"
    (root / "results/joined").mkdir()
    (root / table).write_text("method,value\nmech,0.5\n", encoding="utf-8")
    write_job(root, "join", [TABLE], [table], study="joined")
    origin = trace_file(all_records(root), root, table)
    assert [job.rule for job in origin.jobs()] == ["join", "draw", "score", "make_notes"]


def test_a_file_from_elsewhere_is_refused(root):
    assert relative_path(root, Path(TABLE)) == TABLE
    assert relative_path(root, root / TABLE) == TABLE
    for path in ("world.txt", "results/tiny/absent.csv", "results"):
        with pytest.raises(InputError, match="no file of a study's results"):
            relative_path(root, Path(path))


def test_a_file_without_a_record_is_named(root):
    (root / "results/tiny/stray.csv").write_text("a\n1\n", encoding="utf-8")
    with pytest.raises(InputError, match="no record"):
        trace_file(read_records(root, "tiny")[0], root, "results/tiny/stray.csv")
