"""The smoke study leaves its checkout as a crate and is audited whole in another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mechdistill.audit.crate import DESCRIPTION
from mechdistill.export.crate import export_study
from tests.crate_validator import complaints

from .conftest import STUDY, Checkout

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def crate(smoke: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "smoke"
    export_study(smoke.root, STUDY, out)
    return out


def test_the_crate_of_a_real_study_is_valid(crate: Path, tmp_path: Path) -> None:
    assert complaints(crate, tmp_path / "report.json") == []


def test_its_bytes_and_numbers_are_right_in_another_clone(
    crate: Path, fresh_clone: Checkout
) -> None:
    done = fresh_clone.run("mechdistill.audit", str(crate))
    assert done.returncode == 0, done.stdout
    assert f"audit of {STUDY}: clean" in done.stdout
    assert not (fresh_clone.root / "results" / STUDY).exists()
    assert (crate / DESCRIPTION).is_file()
