"""What the page tells of a teacher that was not trained from scratch: before and after."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mechdistill.artifacts import read_text
from mechdistill.report.formats import percent, plain
from mechdistill.report.rankings import NAMES, PRIMARY

SHARES = ("exact_match", "region_recall", "listed_pair", "parsed")
MEANS = ("tokens", "region_events", "within_events", "refine_positions")
BESIDE = (
    *((1, "cosine", "unembed", ""), (1, "attention_evidence", "", "")),
    *((2, "help", "", ""), (2, "attention_cue", "", "")),
)
"""Scores shown beside the printed ones."""


@dataclass(frozen=True)
class Origin:
    """A checkpoint and what fine-tuning changed.

    Attributes:
        checkpoint, fine_tuning: the sections of the parameters.
        quality: of `mechdistill.traces.quality_table`, both models.
        head_agreement: of `mechdistill.heads.change`.
    """

    checkpoint: Mapping[str, Any]
    fine_tuning: Mapping[str, Any]
    quality: pd.DataFrame
    head_agreement: pd.DataFrame

    @classmethod
    def read(cls, teacher: Mapping[str, Any], quality: str, head_agreement: str) -> Origin:
        """From the section `teacher` and the two tables' files."""
        tables = (
            pd.read_csv(io.StringIO(read_text(path)), keep_default_na=False)
            for path in (quality, head_agreement)
        )
        return cls(teacher["checkpoint"], teacher["fine_tuning"], *tables)

    @property
    def sentence(self) -> str:
        """Where the teacher comes from, and what it was fine-tuned on."""
        files = ", ".join(self.checkpoint["files"])
        tuning = self.fine_tuning
        if not tuning["steps"]:
            return f"The teacher is {files} ({self.checkpoint['name']}) as it is, zero-shot."
        way = f"LoRA of rank {tuning['lora']['rank']}, merged" if tuning["lora"] else "all weights"
        return (
            f"The teacher is {files} ({self.checkpoint['name']}), fine-tuned on "
            f"{tuning['steps'] * tuning['batch_size']} fresh notes with templated reasoning "
            f"({tuning['steps']} steps of {tuning['batch_size']}; {way})."
        )

    @property
    def quality_rows(self) -> list[dict[str, Any]]:
        """One row a model and split."""
        return [
            {
                "model": row["model"],
                "split": row["split"],
                "notes": row["notes"],
                "f1": [plain(row["micro_f1"]), plain(row["micro_f1_named"])],
                "shares": [percent(100 * row[key]) for key in SHARES],
                "means": [plain(row[key], 1) for key in MEANS],
                "status": row["status"],
            }
            for row in self.quality.to_dict("records")
        ]

    @property
    def agreement_rows(self) -> list[dict[str, Any]]:
        """The printed score of each phase, then some others; none where there is no correlation."""
        found = {
            (row["phase"], row["score"], row["anchor"], row["sinks"]): row
            for row in self.head_agreement.to_dict("records")
        }
        wanted = [(phase, *PRIMARY[phase]) for phase in (1, 2)] + list(BESIDE)
        return [
            {
                "phase": key[0],
                "name": NAMES[key[0]] if key[1:] == PRIMARY[key[0]] else key[1].replace("_", " "),
                "heads": found[key]["heads"],
                "spearman": plain(found[key]["spearman"]),
            }
            for key in sorted(wanted, key=lambda wanted: wanted[0])
            if key in found
        ]
