"""What longer candidate lists do, told in words, rows and a verdict."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mechdistill.data.examples import Example
from mechdistill.patching.listed import OF_CELLS, OF_NOTES, summarise_lists
from mechdistill.report.claims import checks
from mechdistill.report.evidence import COLUMNS, NotTested
from mechdistill.report.lists import list_rows, lists_in_words
from mechdistill.report.verdicts import Verdict
from tests.small_space import small_space


def written(number: str, retrieved: int, notes: int) -> pd.DataFrame:
    """Notes of two true codes each, one of them answered, beside a wrong one."""
    return pd.DataFrame(
        {
            **{"example": range(notes), "split": "patching", "number": number, "listed": 12},
            **{"gold": 2, "retrieved": retrieved, "answered": 2, "right": 1, "eligible": True},
        }
    )


@pytest.fixture
def margins(build):
    """Of one length; the top heads move `share` of the gap in both phases."""

    def made(share: float) -> pd.DataFrame:
        shares = {"top": share, "random": 0.1, "all": 1.0}
        return pd.concat(
            build.patched(shares, metric="margin", phase=phase, site="output") for phase in (1, 2)
        )

    return made


def summary(*parts: tuple[pd.DataFrame, pd.DataFrame]) -> pd.DataFrame:
    return summarise_lists(parts, resamples=50, seed=0)


def test_each_length_is_told_with_its_notes(margins):
    made = margins(0.8)
    frame = summary((made, written("10", 1, 24)), (made, written("all", 2, 24)))
    assert list(dict.fromkeys(frame["number"])) == ["10", "all"]
    about = frame.groupby("number")[["notes", "eligible", "listed", "recall", "micro_f1"]].first()
    assert about.loc["10"].tolist() == [24, 24, 12, 0.5, 0.5]
    assert about.loc["all", "recall"] == 1
    assert set(COLUMNS["lists"]) <= set(frame)


def test_a_length_at_which_nothing_can_be_patched_has_a_row(margins):
    nothing = margins(0.8).iloc[:0]
    frame = summary((nothing, written("all", 2, 9)))
    assert len(frame) == 1 and frame["n"].tolist() == [0]
    assert {*OF_NOTES, *OF_CELLS} <= set(frame)
    rows = list_rows(frame, 4)
    assert [row["phase"] for row in rows] == [1, 2]
    assert rows[0]["about"][-1] == "9 of 9" and rows[0]["effects"][0]["text"] == "–"


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ((0.8, 0.6), Verdict.HOLDS),
        ((0.8, 0.1), Verdict.NO_DIFFERENCE),
        ((0.8, -0.5), Verdict.DOES_NOT_HOLD),
        ((0.8, None), Verdict.UNDECIDED),
    ],
)
def test_an_effect_survives_if_it_is_there_at_every_length(build, margins, shares, verdict):
    short, long = (margins(0.0 if share is None else share) for share in shares)
    long = long.iloc[:0] if shares[1] is None else long
    frame = summary((short, written("10", 2, 24)), (long, written("all", 2, 24)))
    outcome = checks.effect_survives_candidates(build.evidence(lists=frame))
    assert outcome.decided is verdict
    assert len(outcome.parts) == 8
    assert outcome.parts[0].estimate.effect == pytest.approx(0.6 * (shares[0] - 0.1), abs=0.05)


def test_one_length_tests_nothing(build):
    with pytest.raises(NotTested, match="is fixed"):
        checks.effect_survives_candidates(build.evidence())


def test_rows_show_shares_of_the_gap(margins, build):
    frame = summary((margins(0.8), written("10", 1, 24)))
    row = list_rows(frame, build.design.pool_size)[0]
    assert row["number"] == "10"
    assert row["levels"] == "1.000 / 0"
    share = float(row["effects"][0]["text"].removesuffix(" %"))
    assert 0 < share < 85 and len(row["effects"]) == 4
    assert np.isfinite(float(row["effects"][1]["text"]))
    assert list_rows(None, 4) == []


def test_the_number_of_candidates_in_words():
    space = small_space()
    codes = [label.code for label in space.labels]

    def note(listed: list[str], gold: tuple[str, ...]) -> Example:
        return Example("a", "test", "", gold, gold, ("R0",), tuple(listed), (), (), "")

    whole = [note(codes[:10], ("R0.0",))]
    assert lists_in_words(whole, space) == "10 candidates of 15 labels"
    part = [*whole, note(codes[:9], ("R4.2",))]
    assert lists_in_words(part, space) == (
        "9 to 10 candidates of 15 labels, 50 % of the true codes listed"
    )
