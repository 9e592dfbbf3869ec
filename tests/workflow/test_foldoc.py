"""A tiny study of documents, from an invented dictionary to patched heads, by the common rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from mechdistill import artifacts
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.twins import TWINS, read_twins
from mechdistill.traces.store import read_traces
from tests.made_dictionary import SUBJECTS, write_made_dictionary

from .conftest import Checkout, clone

pytestmark = pytest.mark.workflow

NAME, FOLDER = "titles", "dictionary"
RESULTS = Path("results", NAME)
TARGETS = ("data/data_card.md", "heads/head_scores.parquet", "patching/margin.parquet")


def overlay(sha256: str) -> dict:
    return {
        "study": NAME,
        "data": {
            "world": {
                **{"name": "foldoc", "regions": 6, "labels_per_region": 3},
                **{"evidence_per_region": 3, "groups_in_context": 3, "problems_max": 1},
                "never_gold": 1,
            },
            "foldoc": {
                **{"task": "links", "folder": FOLDER, "sha256": sha256},
                **{"least_words": 20, "least_documents": 2},
            },
            "splits": {"training": 8, "validation": 8, "ranking": 8, "patching": 8, "test": 8},
        },
        "teacher": {
            "architecture": {
                **{"hidden_size": 48, "layers": 3, "heads": 4, "kv_heads": 2, "head_dim": 16},
                "intermediate_size": 96,
            },
            "training": {
                **{"steps": 100, "batch_size": 32, "learning_rate": 0.025, "warmup_steps": 10},
                **{"validate_every": 50, "checkpoint_every": 50, "target_micro_f1": 0.0},
            },
        },
        "traces": {"max_new_tokens": 48},
        "heads": {"bootstrap": 20, "pool_size": 2, "attention_examples": 2},
        "patching": {
            **{"bins": [1, 2], "random_draws": 2, "generated_examples": 2},
            "generated_bins": [2],
        },
        "distil": {
            "methods": ["vanilla"],
            "seeds": [0],
            "student": {"hidden_size": 16, "layers": 2, "heads": 2, "kv_heads": 1, "head_dim": 8},
        },
        "evaluate": {"curve_examples": 2},
    }


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    found = clone(tmp_path_factory.mktemp("titles") / "mechdistill")
    sha256 = write_made_dictionary(found.root / FOLDER)
    study = found.root / "studies" / f"{NAME}.yaml"
    study.write_text(yaml.safe_dump(overlay(sha256)), encoding="utf-8")
    targets = [str(RESULTS / name) for name in TARGETS]
    done = found.snakemake("--cores", "2", *targets, study=NAME)
    assert done.returncode == 0, done.stdout
    return found


def test_the_data_are_those_of_the_dictionary(checkout: Checkout) -> None:
    folder = checkout.root / RESULTS / "data"
    space = read_label_space(folder / "label_space.json")
    assert {region.name for region in space.regions} <= set(SUBJECTS)
    assert space.documents
    patching = read_examples(folder / "examples.parquet", "patching")
    assert set(read_twins(folder / "twins.parquet")) == {
        (example.example, twin) for example in patching for twin in TWINS
    }
    assert "the world `foldoc`" in (folder / "data_card.md").read_text(encoding="utf-8")


def test_the_common_rules_learn_score_and_patch(checkout: Checkout) -> None:
    folder = checkout.root / RESULTS
    traces = read_traces(folder / "teacher/traces.parquet", "patching")
    assert any(trace.refine and trace.events for trace in traces)
    scores = artifacts.read_table(folder / "heads/head_scores.parquet")
    assert scores.groupby("phase")[["layer", "head"]].value_counts().gt(0).sum() == 2 * 12
    margin = artifacts.read_table(folder / "patching/margin.parquet")
    restored = margin[(margin["ranking"] == "all") & (margin["metric"] == "margin")]
    assert len(restored) and np.isfinite(restored["patched"]).all()


def test_another_edition_stops_the_study_before_any_work(checkout: Checkout) -> None:
    write_made_dictionary(checkout.root / FOLDER, seed=1)
    target = str(RESULTS / "data/label_space.json")
    done = checkout.snakemake("--cores", "1", "--force", target, study=NAME)
    assert done.returncode != 0
    assert "set data.foldoc.sha256 to the one found" in done.stdout
