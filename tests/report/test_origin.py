"""What the page tells of a checkpoint."""

from __future__ import annotations

import pandas as pd
import pytest

from mechdistill.report.page.origin import Origin

CHECKPOINT = {"kind": "folder", "name": "own", "files": {"model.safetensors": "0" * 64}}
TUNING = {"steps": 40, "batch_size": 4, "lora": {"rank": 8, "alpha": 16.0}}
QUALITY = {
    **{"model": "zero-shot", "split": "test", "notes": 16, "micro_f1": 0.0},
    **{"exact_match": 0.0, "region_recall": 0.25, "listed_pair": 0.0, "parsed": 0.0},
    **{"micro_f1_named": 0.4, "tokens": 90.5, "region_events": 0.0, "within_events": 0.0},
    **{"refine_positions": 0.0, "status": "no answer: 12, unfinished: 4"},
}


@pytest.fixture
def origin(tmp_path) -> Origin:
    quality, agreement = tmp_path / "quality.csv", tmp_path / "agreement.csv"
    pd.DataFrame([QUALITY]).to_csv(quality, index=False)
    columns = ["phase", "score", "anchor", "sinks", "heads", "spearman"]
    rows = [
        (2, "refine", "", "", 270, 0.5),
        (1, "coarse", "unembed", "out", 270, -0.25),
        (1, "kurtosis", "", "out", 270, 0.9),
        (1, "attention_evidence", "", "", 270, 0.75),
    ]
    pd.DataFrame(rows, columns=columns).to_csv(agreement, index=False)
    teacher = {"checkpoint": CHECKPOINT, "fine_tuning": TUNING}
    return Origin.read(teacher, str(quality), str(agreement))


def test_the_teacher_is_told_with_its_files_and_its_fine_tuning(origin: Origin) -> None:
    for part in ("model.safetensors", "160 fresh notes", "40 steps of 4", "LoRA of rank 8"):
        assert part in origin.sentence
    plain = Origin(CHECKPOINT, TUNING | {"lora": None}, origin.quality, origin.head_agreement)
    assert "all weights" in plain.sentence
    untouched = Origin(CHECKPOINT, TUNING | {"steps": 0}, origin.quality, origin.head_agreement)
    assert "zero-shot" in untouched.sentence


def test_what_is_weak_stands_there_as_it_is(origin: Origin) -> None:
    [row] = origin.quality_rows
    assert row["f1"] == ["0", "0.400"]
    assert row["shares"] == ["0 %", "25 %", "0 %", "0 %"]
    assert row["status"] == QUALITY["status"]


def test_printed_scores_come_first_and_missing_ones_are_left_out(origin: Origin) -> None:
    assert [(row["name"], row["spearman"]) for row in origin.agreement_rows] == [
        ("CoarseScore", "-0.250"),
        ("attention evidence", "0.750"),
        ("RefineScore", "0.500"),
    ]
