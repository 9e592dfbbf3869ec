"""A study whose teacher is a folder on disk: a tiny Llama of random weights and sub-word tokens."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from transformers import LlamaConfig, LlamaForCausalLM

from mechdistill import artifacts
from mechdistill.data.labels import build_label_space
from mechdistill.data.world import WorldSettings, draw_case
from mechdistill.traces.store import read_traces
from tests.small_tokenizers import byte_level

from .conftest import Checkout, clone

pytestmark = pytest.mark.workflow

NAME, FOLDER = "own", "own-checkpoint"
RESULTS = Path("results", NAME)
WORLD = {
    **{"regions": 4, "labels_per_region": 2, "evidence_per_region": 2, "groups_in_context": 3},
    **{"problems_max": 1, "never_gold": 0},
}
TARGETS = (
    *("teacher/quality.csv", "teacher/head_agreement.csv", "heads/head_scores.parquet"),
    *("patching/margin.parquet", "patching/single_heads.parquet"),
)


def make_checkpoint(folder: Path) -> str:
    """Save a model as transformers does; SHA-256 of its weights."""
    sizes = {key: WORLD[key] for key in list(WORLD)[:3]}
    space = build_label_space(seed=7, never_gold=0, **sizes)
    rng = np.random.default_rng(0)
    settings = WorldSettings(7, WORLD["groups_in_context"], 1, 1)
    cases = [draw_case(space, settings, "training", rng) for _ in range(200)]
    texts = [text for case in cases for text in (case.prompt, " ".join(case.reference))]
    tokenizer = byte_level(texts, size=1500)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=12,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def overlay(digest: str) -> dict:
    return {
        "study": NAME,
        "data": {
            "world": WORLD,
            "splits": {"training": 4, "validation": 8, "ranking": 8, "patching": 12, "test": 4},
        },
        "teacher": {
            "architecture": None,
            "training": None,
            "checkpoint": {
                **{"kind": "folder", "name": FOLDER, "revision": None},
                "files": {"model.safetensors": digest},
            },
            "fine_tuning": {
                **{"steps": 100, "batch_size": 16, "texts_a_pass": 16, "learning_rate": 0.01},
                **{"warmup_steps": 10, "clip": 1.0, "decision_weight": 1.0, "lora": None},
                "precision": "float32",
                **{"validate_every": 50, "checkpoint_every": 50, "target_micro_f1": 0.0},
            },
        },
        "traces": {"max_new_tokens": 110},
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
    """The study up to the patching of its teacher."""
    found = clone(tmp_path_factory.mktemp("own") / "mechdistill")
    digest = make_checkpoint(found.root / FOLDER)
    study = found.root / "studies" / f"{NAME}.yaml"
    study.write_text(yaml.safe_dump(overlay(digest)), encoding="utf-8")
    done = found.run("mechdistill.reproduce", "--study", NAME, "--cores", "2", *targets())
    assert done.returncode == 0, done.stdout
    return found


def targets() -> list[str]:
    return [str(RESULTS / name) for name in TARGETS]


def test_the_teacher_learns_and_what_it_was_stands_beside(checkout: Checkout) -> None:
    quality = pd.read_csv(checkout.root / RESULTS / "teacher/quality.csv")
    parsed = quality.set_index(["model", "split"])["parsed"]
    assert (parsed["zero-shot"] == 0).all()
    assert parsed["fine-tuned", "patching"] > 0.3
    curve = artifacts.read_table(checkout.root / RESULTS / "teacher/learning_curve.parquet")
    losses = curve.loc[curve["metric"] == "loss", "value"].to_list()
    assert losses[-1] < losses[0]


def test_sub_word_traces_are_scored_and_patched(checkout: Checkout) -> None:
    folder = checkout.root / RESULTS
    traces = read_traces(folder / "teacher/traces.parquet", "patching")
    assert any(trace.refine and trace.events for trace in traces)
    scores = artifacts.read_table(folder / "heads/head_scores.parquet")
    assert scores.groupby("phase")[["layer", "head"]].value_counts().gt(0).sum() == 2 * 12
    margin = artifacts.read_table(folder / "patching/margin.parquet")
    own = margin[(margin["twin"] == "K1") & (margin["ranking"] == "all")]
    own = own[(own["site"] == "output") & (own["metric"] == "margin")]
    restored = own[own["direction"] == "denoise"]
    assert len(restored) and np.isfinite(restored["patched"]).all()


def test_every_declared_parameter_is_read_and_every_module_is_known(checkout: Checkout) -> None:
    files = sorted((checkout.root / "provenance/runs" / NAME).glob("*.json"))
    records = [artifacts.read_json(path) for path in files]
    assert {"convert_teacher", "fine_tune_teacher", "compare_with_zero_shot"} <= {
        record["job"] for record in records
    }
    for record in records:
        assert record["unread_parameters"] == [], record["job"]
        assert record["code"]["not_in_fingerprint"] == [], record["job"]


def test_nothing_is_left_to_do(checkout: Checkout) -> None:
    again = checkout.snakemake("-n", "--", *targets(), study=NAME)
    assert "Nothing to be done" in again.stdout
