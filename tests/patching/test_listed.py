"""Patching of notes with other lists: by the sweep that the common rules use."""

from __future__ import annotations

import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.candidates import CandidateLists, list_all
from mechdistill.data.examples import draw_cases, example_of, write_examples
from mechdistill.data.frame import Frame
from mechdistill.data.labels import write_label_space
from mechdistill.data.tokenizer import build_tokenizer, save_tokenizer
from mechdistill.data.twins import twins_of
from mechdistill.data.world import WorldSettings
from mechdistill.models.loading import save_model
from mechdistill.patching.conditions import (
    RANKINGS,
    conditions,
    distinct_sets,
    head_masks,
    heads_of,
)
from mechdistill.patching.effects import margin_table
from mechdistill.patching.listed import patch_listed, written_table
from mechdistill.patching.margin_sweep import sweep_margins
from mechdistill.patching.pairs import make_pairs
from mechdistill.traces.reference import reference_traces
from tests.small_space import small_model, small_space

SPACE = small_space()
SIZE = (2, 4)
FORCED = {"force_gold": True, "list_first": True}
SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"


@pytest.fixture(scope="module")
def notes():
    """Notes with all labels listed, the reference as the trace of each, and a model."""
    tokenizer = build_tokenizer(SPACE)
    settings = WorldSettings(seed=0, groups_in_context=3, problems_min=1, problems_max=1)
    drawn = [
        example_of(case, name, split)
        for name, split, case in draw_cases(SPACE, settings, {"patching": 5}, 0)
    ]
    lists = CandidateLists(SPACE, Frame(), "all", **FORCED, seed=0)
    examples, listing = list_all(drawn, lists, 0)
    return examples, listing, reference_traces(examples, tokenizer, SPACE, 30), tokenizer


@pytest.fixture(scope="module")
def planned():
    every = heads_of(*SIZE)
    ranked = {"top": every, "top_help": every[::-1]}
    return {phase: conditions(ranked, every, (1, 3), 2, 0) for phase in (1, 2)}


def test_margins_are_those_of_the_common_sweep(notes, planned):
    examples, _, traces, tokenizer = notes
    model = small_model(tokenizer)
    found = patch_listed(
        model, examples, traces, SPACE, tokenizer, planned, seed=0, branches_per_pass=99
    )
    twins = {(t.example, t.twin): t for e in examples for t in twins_of(e, SPACE, tokenizer, 0)}
    expected = []
    for phase, twin in ((1, "K1"), (2, "K2")):
        own = [c for c in planned[phase] if not c.ranking.endswith("_help")]
        sets = distinct_sets(own)
        effects = sweep_margins(
            model,
            make_pairs(traces, twins, twin, tokenizer),
            phase,
            head_masks(sets, *SIZE),
            pad_id=tokenizer.pad_token_id,
            branches_per_pass=99,
        )
        expected.append(margin_table(effects, own, sets, phase, twin))
    pd.testing.assert_frame_equal(found, pd.concat(expected, ignore_index=True))
    assert set(found["ranking"]) == {"top", "random", "depth_matched", "lowest", "all"}
    assert np.isfinite(found["patched"]).all()


def test_traces_that_cannot_be_patched_leave_an_empty_table(notes, planned):
    examples, listing, _, tokenizer = notes
    silent = reference_traces(
        [_without_reasoning(example) for example in examples], tokenizer, SPACE, 30
    )
    found = patch_listed(
        small_model(tokenizer),
        examples,
        silent,
        SPACE,
        tokenizer,
        planned,
        seed=0,
        branches_per_pass=9,
    )
    assert found.empty and "patched" in found
    assert not written_table(listing, examples, silent)["eligible"].any()


def test_what_the_teacher_wrote_is_counted(notes):
    examples, listing, traces, _ = notes
    table = written_table(listing, examples, traces)
    assert table["eligible"].all()
    assert (table["answered"] == table["right"]).all() and (table["right"] == table["gold"]).all()


def _without_reasoning(example):
    return replace(example, reference="Overview: . Review: Answer: .")


def test_scripts_patch_two_lengths_and_summarise_them(notes, tmp_path, monkeypatch):
    examples, _, _, tokenizer = notes
    paths = {name: str(tmp_path / name) for name in ("model", "config", "space", "tokenizer")}
    save_model(small_model(tokenizer), paths["model"], paths["config"])
    write_label_space(paths["space"], SPACE)
    save_tokenizer(paths["tokenizer"], tokenizer)
    drawn, rankings = str(tmp_path / "drawn.parquet"), str(tmp_path / "rankings.parquet")
    write_examples(drawn, examples)
    variants = [(p, *v) for p, own in RANKINGS.items() for v in own.values()]
    ranked = [("teacher", *v, n, *h) for v in variants for n, h in enumerate(heads_of(*SIZE))]
    columns = ["model", "phase", "score", "anchor", "sinks", "rank", "layer", "head"]
    write_table(rankings, pd.DataFrame(ranked, columns=columns))
    numbers, made = ("6", "all"), {"margin": [], "written": []}
    p = {
        "seed": 0,
        "data.prompt": {"style": "plain", "demonstrations": 0},
        "data.candidates": {"number": 6, "sweep": [6, "all"], **FORCED},
        **{"traces.early_tokens": 30, "traces.max_new_tokens": 4, "traces.batch_size": 9},
        **{"patching.bins": [1], "patching.random_draws": 1, "patching.seed": 0},
        "patching.branches_per_pass": 9,
    }
    for number in numbers:
        for kind, files in made.items():
            files.append(str(tmp_path / f"{kind}-{number}.parquet"))
        run_script(
            monkeypatch,
            "patch_listed",
            *("--model", paths["model"], "--config", paths["config"]),
            *("--label-space", paths["space"], "--tokenizer", paths["tokenizer"]),
            *("--drawn", drawn, "--rankings", rankings, "--number", number),
            *("--margin", made["margin"][-1], "--written", made["written"][-1]),
            *("--params", json.dumps(p)),
        )
    assert read_table(made["written"][0])["listed"].tolist() == [6] * len(examples)
    run_script(
        monkeypatch,
        "summarise_lists",
        *("--margins", *made["margin"], "--written", *made["written"]),
        *("--summary", str(tmp_path / "lists.parquet")),
        *("--params", json.dumps({"patching.seed": 0, "significance.bootstrap": 10})),
    )
    summary = read_table(tmp_path / "lists.parquet")
    assert summary["number"].tolist() == list(numbers)  # random weights write no reasoning
    assert summary["notes"].tolist() == [len(examples)] * 2
    assert summary["n"].tolist() == [0, 0]


def run_script(monkeypatch, name, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__")
