"""What a job asks of a cluster follows from its study, and grows when the job failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from mechdistill.planning.resources import (
    BESIDE,
    LEAST_MEMORY,
    LEAST_MINUTES,
    READERS,
    Needs,
    needs_of,
)
from mechdistill.planning.work import Planner, planner_of
from mechdistill.study import load_study

ROOT = Path(__file__).parents[2]
MEASURED = pd.read_csv(Path(__file__).with_name("measured.csv"))


def planner(study: str, device: str | None = None) -> Planner:
    return planner_of(load_study({"study": study}, ROOT), ROOT, device)


@pytest.mark.parametrize("study", ["smoke", "embedded", "pretrained"])
def test_measured_jobs_end_within_a_third_of_their_time(study):
    planned = planner(study, "cpu")
    for row in MEASURED[MEASURED.study == study].itertuples():
        assert 60 * needs_of(row.rule, planned).minutes > 3 * row.cpu_seconds, row.rule


@pytest.mark.parametrize("study", ["smoke", "embedded", "pretrained"])
def test_measured_jobs_stay_within_their_memory(study):
    planned = planner(study, "cpu")
    for row in MEASURED[(MEASURED.study == study) & MEASURED.peak_mb.notna()].itertuples():
        assert needs_of(row.rule, planned).memory > row.peak_mb + BESIDE / 1e6, row.rule


def test_a_prompt_costs_a_student_no_memory_for_logits():
    short = planner("paper-mimic-iv")
    longer = replace(short, sizes=replace(short.sizes, prompt=2 * short.sizes.prompt))
    more = longer.of("train_student", 1).memory - short.of("train_student", 1).memory
    training = short.study.distil.training
    assert more < 4 * training.batch_size * short.sizes.prompt * short.student.vocabulary


def test_a_longer_training_gets_more_time():
    short = planner("embedded")
    training = short.study.teacher.training
    assert training is not None
    longer = training.model_copy(update={"steps": 10 * training.steps})
    teacher = short.study.teacher.model_copy(update={"training": longer})
    long = replace(short, study=short.study.model_copy(update={"teacher": teacher}))
    hour = needs_of("train_teacher", short).minutes
    assert 5 * hour < needs_of("train_teacher", long).minutes <= 10 * hour


def test_a_wider_model_gets_more_memory():
    small = planner("pretrained", "cpu")
    large = replace(small, teacher=replace(small.teacher, layers=10 * small.teacher.layers))
    rule = "fine_tune_teacher"
    assert needs_of(rule, large).memory > 2 * needs_of(rule, small).memory


def test_only_jobs_that_run_a_large_model_ask_for_graphics_cards():
    large = planner("paper-mimic-iv")
    assert needs_of("generate_teacher_traces", large).gpus >= 2  # 141 GB of weights, 72 GB a card
    assert needs_of("train_student", large).gpus >= 1
    assert needs_of("make_tables", large).gpus == 0
    assert needs_of("convert_teacher", large).gpus == 0
    assert needs_of("convert_teacher", large).memory > 420_000  # three copies, in MB
    for rule in READERS:
        assert needs_of(rule, large) == Needs(10_000, 240)


def test_packaged_studies_need_no_graphics_card():
    for study in ("smoke", "embedded", "pretrained"):
        planned = planner(study)
        rules = MEASURED[MEASURED.study == study].rule
        assert {needs_of(rule, planned).gpus for rule in rules} == {0}


def test_a_simulator_takes_a_graphics_card_where_it_is_a_t5():
    encoder = planner("smoke")
    simulator = encoder.study.evaluate.simulator
    assert simulator is not None
    t5 = simulator.model_copy(update={"kind": "t5"})
    evaluate = encoder.study.evaluate.model_copy(update={"simulator": t5})
    other = replace(encoder, study=encoder.study.model_copy(update={"evaluate": evaluate}))
    assert needs_of("train_simulator", encoder).gpus == 0
    assert needs_of("train_simulator", other).gpus == 1
    assert needs_of("train_student", other).gpus == 0


def test_each_further_attempt_gets_twice_the_memory_and_time_and_no_more_cards():
    assert Needs(5000, 40, 2).at(1) == Needs(5000, 40, 2)
    assert Needs(5000, 40, 2).at(2) == Needs(10_000, 80, 2)
    assert Needs(5000, 40, 2).at(3) == Needs(20_000, 160, 2)


def test_a_joined_study_asks_for_the_least():
    assert needs_of("write_joined_report", None) == Needs(LEAST_MEMORY, LEAST_MINUTES)
