"""Machines that jobs of one study may have run on."""

from __future__ import annotations

from mechdistill.audit.checkout import mixed_machines

from .made_records import a_record


def strangers(*records) -> list[str]:
    findings = list(mixed_machines(records))
    assert {finding.code for finding in findings} <= {"MIXED-MACHINES"}
    return [finding.where.split("/")[-1] for finding in findings]


def test_one_kind_of_machine_is_no_finding() -> None:
    assert strangers(*(a_record(name, cpu="EPYC") for name in "abc")) == []
    assert strangers() == []


def test_another_model_of_processor_or_gpu_is_found() -> None:
    usual = [a_record(name, cpu="EPYC", accelerator="H200") for name in "ab"]
    other = a_record("c", cpu="Xeon", accelerator="H200")
    assert strangers(*usual, other) == ["c.json"]
    assert strangers(*usual, a_record("c", cpu="EPYC", accelerator="A100")) == ["c.json"]
    assert strangers(*usual, a_record("c", cpu="Xeon", accelerator="A100")) == ["c.json"]
    assert strangers(*usual, a_record("c", cpu="EPYC")) == []  # it used no GPU


def test_nodes_of_slurm_may_differ_in_model_and_in_nothing_else() -> None:
    node = {"slurm_job_id": "7", "cpu": "Xeon"}
    usual = [a_record(name, cpu="EPYC", slurm_job_id="1") for name in "ab"]
    assert strangers(*usual, a_record("c", **node)) == []
    assert strangers(*usual, a_record("c", **node, processor="aarch64")) == ["c.json"]
    assert strangers(*usual, a_record("c", **node, python="3.12")) == ["c.json"]


def test_a_job_beside_slurm_must_have_run_on_a_model_that_it_used() -> None:
    nodes = [a_record("a", cpu="EPYC", slurm_job_id="1"), a_record("b", cpu="EPYC")]
    nodes.append(a_record("c", cpu="Xeon", slurm_job_id="2"))
    assert strangers(*nodes, a_record("d", cpu="Xeon")) == []
    assert strangers(*nodes, a_record("d", cpu="Core")) == ["d.json"]


def test_records_that_name_no_model_are_taken_for_the_usual_one() -> None:
    assert strangers(a_record("a", cpu="EPYC"), a_record("b")) == []
