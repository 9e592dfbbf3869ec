"""A study of long candidate lists: its data by the common rules, and the jobs that it plans."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mechdistill.artifacts import read_table
from mechdistill.data.examples import read_examples

from .conftest import Checkout, clone

pytestmark = pytest.mark.workflow

NAME = "long-lists"
RESULTS = Path("results", NAME, "data")
OVERLAY = {
    "study": NAME,
    "extends": ["smoke"],
    "data": {
        "candidates": {
            **{"number": 10, "sweep": [10, "all"]},
            **{"force_gold": False, "list_first": True},
        }
    },
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    found = clone(tmp_path_factory.mktemp("lists") / "mechdistill")
    (found.root / "studies" / f"{NAME}.yaml").write_text(yaml.safe_dump(OVERLAY))
    target = str(RESULTS / "data_card.md")
    done = found.snakemake("--cores", "2", target, study=NAME)
    assert done.returncode == 0, done.stdout
    return found


def test_notes_list_what_is_retrieved_and_the_card_tells_recall(checkout: Checkout) -> None:
    folder = checkout.root / RESULTS
    examples = {one.example: one for one in read_examples(folder / "examples.parquet")}
    listing = read_table(folder / "listing.parquet")
    assert len(examples) == len(listing)
    for row in listing.to_dict("records"):
        one = examples[row["example"]]
        assert row["listed"] == len(one.candidates) == 10
        assert row["retrieved"] == len(set(one.gold) & set(one.candidates))
    test = listing[listing["split"] == "test"]
    share = test["retrieved"].sum() / test["gold"].sum()
    assert 0 < share <= 1
    card = (folder / "data_card.md").read_text(encoding="utf-8")
    assert "recall at 10" in card
    assert f"| test | 24 | 10.0 (10 to 10) | {share:.3f} |" in card
    assert "| candidates.force_gold | False |" in card


def test_patching_is_planned_at_each_length(checkout: Checkout) -> None:
    done = checkout.snakemake("-n", "-q", "rules", study=NAME)
    assert done.returncode == 0, done.stdout
    counts = dict(line.split()[:2] for line in done.stdout.splitlines() if len(line.split()) == 2)
    assert (counts["patch_listed"], counts["summarise_lists"]) == ("2", "1")
    assert "make_examples" not in counts
