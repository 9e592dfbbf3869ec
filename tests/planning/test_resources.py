"""What a job asks of a cluster follows from its study, and grows when the job failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from mechdistill.planning.device import CPU
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


SHARED = {"micro_batch": 1, "precision": "bfloat16", "offload": False}


def large_students(**changes: object) -> Planner:
    """A study on cards whose students are of 8 billion parameters, partitioned."""
    distil = {
        "deepspeed": SHARED | {"gradient_checkpointing": True} | changes,
        "student": {
            **{"hidden_size": 4096, "layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128},
            "intermediate_size": 14336,
        },
    }
    study = load_study({"study": "paper-mimic-iv", "distil": distil}, ROOT)
    return planner_of(study, ROOT)


def test_only_jobs_that_compute_on_graphics_cards_ask_for_them():
    large = planner("paper-mimic-iv")
    bare = large.study.distil.model_copy(update={"deepspeed": None})
    one = replace(large, study=large.study.model_copy(update={"distil": bare}))
    for rule in ("generate_teacher_traces", "score_heads", "train_student", "make_tables"):
        assert needs_of(rule, one).gpus == 0, rule
    assert needs_of("convert_teacher", large).gpus == 0
    assert needs_of("convert_teacher", large).memory > 840_000  # three copies in fp32, in MB
    for rule in READERS:
        assert needs_of(rule, large) == Needs(10_000, 240)


def test_a_partitioned_student_asks_for_as_many_cards_as_hold_it():
    own, aside = large_students(), large_students(offload=True)
    assert own.student.parameters > 7e9
    cards = needs_of("train_student", own).gpus
    states = 16 * own.student.parameters
    room = own.device.memory
    assert cards >= 2 and states / cards < room
    assert own.study.distil.training.batch_size % cards == 0
    with_fewer = own.shared("train_student")
    assert with_fewer is not None and with_fewer.device <= room
    offloaded = needs_of("train_student", aside)
    assert offloaded.gpus < cards
    # the machine holds what the cards do not
    assert 1e6 * offloaded.memory > states + 8 * own.student.parameters
    assert needs_of("score_heads", own).gpus == 0


def test_a_partitioned_student_without_cards_is_planned_in_one_process():
    on_core = large_students()
    shared = replace(on_core, device=CPU).shared("train_student")
    assert shared is not None and shared.processes == 1
    assert shared.host > 16 * on_core.student.parameters


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
