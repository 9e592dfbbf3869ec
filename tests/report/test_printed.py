"""The paper's numbers stand beside ours, and nothing reads them but the page."""

import re
from pathlib import Path

import pandas as pd
import pytest

import mechdistill
from mechdistill.report.page.printed import METHODS, METRICS, Ours, printed_numbers, printed_tables
from mechdistill.report.tables import COLUMNS


def our_rows(*rows):
    return pd.DataFrame([{"baseline": "", **row} for row in rows], columns=list(COLUMNS))


def value(method, metric, number):
    return {"method": method, "metric": metric, "value": number}


def gain(baseline, metric, number):
    return {"method": "mech", "metric": metric, "baseline": baseline, "gain": number}


OURS = our_rows(
    value("vanilla", "focus", 0.4),
    value("cwt", "focus", 0.45),
    value("mech", "focus", 0.5),
    value("teacher", "focus", 0.6),
    gain("vanilla", "focus", 0.1),
    gain("cwt", "focus", 0.05),
    gain("vanilla_margin", "focus", 9.0),
    gain("vanilla", "help", 0.2),
)


@pytest.fixture
def tables():
    return printed_tables(lambda _: [Ours("this study (small)", OURS)])


def cells(block, name):
    return dict(block.rows)[name]


def test_the_copy_holds_every_printed_cell():
    numbers = printed_numbers()

    assert numbers.groupby("table").size().to_dict() == {1: 112, 2: 48, 3: 48, 4: 48}
    assert (numbers["value"] != "").sum() == 224
    assert (numbers["gain_printed"] != "").sum() == 96
    assert numbers["marker"].value_counts().to_dict() == {"none": 192, "▲": 56, "▼": 8}
    assert set(numbers["metric"]) == set(METRICS)
    assert set(numbers["method"]) == {*METHODS, "avg_gain"}


def test_rows_stand_in_the_papers_order(tables):
    first, second, third, fourth = tables
    paper = ["Vanilla", "UniCoTT", "MoRSD", "SemCoT", "CWT", "Mech"]

    assert [name for name, _ in first.blocks[0].rows] == paper
    assert [name for name, _ in first.blocks[2].rows] == ["average gain"]
    assert [name for name, _ in second.blocks[0].rows] == ["Vanilla", "Mech"]
    assert [re.split(r"\s", column)[0] for column in third.columns] == ["Foc", "Conf", "LAS", "F1"]
    assert len(fourth.columns) == 4
    assert [block.title for block in first.blocks] == [
        "MIMIC-IV-full, LLaMA3-7B",
        "MIMIC-IV-full, LLaMA3-13B",
        "MIMIC-IV-full, average over students",
        "MIMIC-IV-full, LLaMA3-70B",
        "this study (small)",
    ]


def test_cells_are_texts_as_printed(tables):
    block = tables[0].blocks[0]

    assert cells(block, "Mech")[0] == "0.62 ▲ +0.09"
    assert cells(block, "Vanilla")[0] == "0.39"
    assert cells(tables[0].blocks[2], "average gain")[1] == "-0.098"


def test_ours_stand_last_with_the_reference_of_their_gain(tables):
    for table in tables:
        assert [block.ours for block in table.blocks] == [False] * (len(table.blocks) - 1) + [True]
    ours, fewer = tables[0].blocks[-1], tables[1].blocks[-1]

    assert cells(ours, "Vanilla")[0] == "0.400"
    assert cells(ours, "Mech over the mean of Vanilla, CWT")[0] == "+0.075"
    assert cells(ours, "Mech over the mean of Vanilla, CWT")[-1] == "–"  # no gain over CWT
    assert cells(ours, "UniCoTT")[0] == "–"
    assert cells(fewer, "Mech over the mean of Vanilla")[0] == "+0.100"
    assert "over the mean of all five baselines" in tables[0].caption
    assert "over Vanilla" in tables[1].caption


def test_only_the_page_reads_the_printed_numbers():
    """No claim, mark or table of ours can be drawn towards them."""
    package = Path(mechdistill.__file__).parent
    readers = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"printed_tables|page\.printed", path.read_text(encoding="utf-8"))
    }

    pages = {"report/page/__init__.py", "report/joined/page.py"}
    assert readers == {*pages, "report/page/printed.py"}
