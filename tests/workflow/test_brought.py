"""A small restricted study: its first rules on invented files, and where their text ends up."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from mechdistill.artifacts import read_json
from mechdistill.data.labels import read_label_space
from mechdistill.data.sources import mimic_iv
from mechdistill.data.sources.collection import read_documents
from tests.made_mimic import SECRET, TOLD, edit_rows, told_stays, write_made_mimic_iv

from .conftest import Checkout, clone

pytestmark = pytest.mark.workflow

NAME, FOLDER = "restricted", "data/made"
RESULTS = Path("results", NAME, "data")
HOLD_TEXT = {"documents.parquet"}
"""Files that hold texts of notes, and may."""


def planted(data: bytes) -> bool:
    return any(word.encode() in data for word in SECRET.replace(",", "").split())


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    found = clone(tmp_path_factory.mktemp("brought") / "mechdistill")
    write_made_mimic_iv(found.root / FOLDER, told_stays(), TOLD)
    overlay = yaml.safe_load((found.root / "studies/paper-mimic-iv.yaml").read_text())
    overlay["study"] = NAME
    overlay["data"]["source"]["folder"] = FOLDER
    overlay["data"]["world"] |= {"regions": 5, "labels_per_region": 3, "groups_in_context": 3}
    overlay["data"]["world"]["problems_max"] = 1
    (found.root / "studies" / f"{NAME}.yaml").write_text(yaml.safe_dump(overlay))
    return found


def test_a_bad_file_stops_the_study_before_any_work_and_shows_no_text(checkout: Checkout) -> None:
    table = checkout.root / FOLDER / f"{mimic_iv.DIAGNOSES}.csv.gz"
    good = table.read_bytes()
    edit_rows(table, lambda rows: rows[9].__setitem__(3, SECRET))
    target = str(RESULTS / "label_space.json")
    done = checkout.snakemake("--cores", "1", target, study=NAME)
    table.write_bytes(good)
    assert done.returncode != 0
    assert "row 9: column icd_code: found a text of" in done.stdout
    assert "What to do: mend the value" in done.stdout
    assert not planted(done.stdout.encode())
    assert not list((checkout.root / RESULTS).glob("*"))


def test_the_first_rules_read_and_show_counts_and_no_text(checkout: Checkout) -> None:
    target = str(RESULTS / "label_space.json")
    done = checkout.snakemake("--cores", "1", target, study=NAME)
    assert done.returncode == 0, done.stdout
    assert "rows of note/discharge: 300 (published: 331793)" in done.stdout
    assert not planted(done.stdout.encode())
    content = read_json(checkout.root / RESULTS / "checked.json")
    assert {count["what"]: count["found"] for count in content["counts"]}["codes"] == len(TOLD)
    assert len(content["files"]) == 5
    documents = list(read_documents(checkout.root / RESULTS / "documents.parquet"))
    assert len(documents) == 300 and SECRET in documents[0].text
    assert len(read_label_space(checkout.root / RESULTS / "label_space.json").regions) == 5
    shutil.rmtree(checkout.root / FOLDER)
    holding = {
        path.name
        for path in checkout.root.rglob("*")
        if path.is_file() and ".git" not in path.parts and "tests" not in path.parts
        if planted(path.read_bytes())
    }
    assert holding <= HOLD_TEXT  # compressed there: so not found, or found where it may be
