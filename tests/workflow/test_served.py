"""A study whose teacher stands on a server: the server is asked, and nothing else is new."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from .conftest import clone

pytestmark = pytest.mark.workflow

SERVER = {
    **{"base_url": "http://localhost:8000/v1", "model": "teacher", "concurrency": 4},
    **{"requests_per_second": None, "timeout": 600.0, "retries": 5},
    "restricted_data_may_leave": False,
}


def test_a_server_is_asked_in_place_of_the_teacher_here(tmp_path: Path) -> None:
    checkout = clone(tmp_path / "mechdistill")
    overlay = checkout.root / "studies" / "smoke.yaml"
    study = yaml.safe_load(overlay.read_text(encoding="utf-8"))
    study["teacher"]["generation"] = {"backend": "server", "server": SERVER}
    overlay.write_text(yaml.safe_dump(study), encoding="utf-8")
    jobs = checkout.planned()
    assert "ask_teacher_server" in jobs and "generate_teacher_traces" not in jobs
    assert {"train_teacher", "decode_model teacher", "score_heads"} <= jobs
