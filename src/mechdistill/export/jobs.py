"""Steps, jobs and the whole run of a study as nodes of the crate's graph.

A rule is a step, its script the step's tool. A job record is a `CreateAction` of that tool, which a
`ControlAction` of the step brought about. Who ran it is not known, so that no action has an agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from mechdistill.audit.record import Record
from mechdistill.export.entity import Entity, fragment, ids, links
from mechdistill.export.services import service_ids
from mechdistill.export.values import Values

WORKFLOW = "Snakefile"
RUN, ENGINE, ENGINE_RUN = "#run", "#snakemake", "#engine-run"
COMPLETED = "http://schema.org/CompletedActionStatus"
HOMEPAGE = "https://snakemake.github.io"
USAGE = {"wall_seconds": "SEC", "peak_memory_bytes": "AD"}
"""What a record says a job took -> unit, a common code of UN/CEFACT."""


def job_id(record: Record) -> str:
    """Of the action of a job."""
    return fragment("job", record.name)


def step_entities(records: Sequence[Record]) -> list[Entity]:
    """The rules that ran, in the order of their first jobs."""
    scripts = {record.rule: record.command[0] for record in records}
    return [
        {
            "@id": _step_id(rule),
            "@type": "HowToStep",
            "name": rule,
            "position": str(number),
            "workExample": {"@id": quote(script)},
        }
        for number, (rule, script) in enumerate(scripts.items(), start=1)
    ]


def job_entities(record: Record, results: Mapping[str, Entity], values: Values) -> list[Entity]:
    """The action of one job, the one that brought it about, and what it took.

    Args:
        record: of the job.
        results: path -> node.
        values: of the study's parameters.
    """
    usage = _usage_entities(record)
    asked = service_ids(record)
    action = {
        "@id": job_id(record),
        "@type": "CreateAction",
        "name": record.job,
        "description": f"{record.command[0]} on {record.threads} thread(s)",
        "instrument": links([quote(record.command[0]), *asked]),
        "object": links(
            [*(results[file.path]["@id"] for file in record.inputs), *values.of(record)]
        ),
        "result": links(results[file.path]["@id"] for file in record.outputs),
        "startTime": record.started.isoformat(),
        "endTime": record.ended.isoformat(),
        "actionStatus": COMPLETED,
        "resourceUsage": links(ids(usage)),
        "subjectOf": {"@id": quote(record.path)},
    }
    control = {
        "@id": _control_id(record),
        "@type": "ControlAction",
        "name": f"step {record.rule}",
        "instrument": {"@id": _step_id(record.rule)},
        "object": {"@id": job_id(record)},
        "actionStatus": COMPLETED,
    }
    return [action, control, *usage]


def run_entities(
    study: str, records: Sequence[Record], results: Mapping[str, Entity], values: Values
) -> list[Entity]:
    """The whole run, from its first job's start to its last one's end, and what organised it."""
    made = {file.path for record in records for file in record.outputs}
    read = {file.path for record in records for file in record.inputs}
    versions = {record.environment.packages.get("snakemake") for record in records}
    times = {
        "startTime": min(record.started for record in records).isoformat(),
        "endTime": max(record.ended for record in records).isoformat(),
        "actionStatus": COMPLETED,
    }
    engine = {
        "@id": ENGINE,
        "@type": "SoftwareApplication",
        "name": "Snakemake",
        "softwareVersion": ", ".join(sorted(filter(None, versions))) or "not recorded",
        "url": HOMEPAGE,
    }
    organised = {
        "@id": ENGINE_RUN,
        "@type": "OrganizeAction",
        "name": "Snakemake",
        "instrument": {"@id": ENGINE},
        "object": links(_control_id(record) for record in records),
        "result": {"@id": RUN},
        **times,
    }
    run = {
        "@id": RUN,
        "@type": "CreateAction",
        "name": f"the study {study}",
        "description": f"{len(records)} jobs",
        "instrument": {"@id": WORKFLOW},
        "object": links([*(results[path]["@id"] for path in sorted(read - made)), *values.all()]),
        "result": links(results[path]["@id"] for path in sorted(made - read)),
        **times,
    }
    return [engine, organised, run]


def _usage_entities(record: Record) -> list[Entity]:
    """What the job took, as far as its record says."""
    taken = [(name, unit, getattr(record, name)) for name, unit in USAGE.items()]
    return [
        {
            "@id": fragment("job", record.name, name),
            "@type": "PropertyValue",
            "name": name,
            "propertyID": name,
            "unitCode": unit,
            "value": value,
        }
        for name, unit, value in taken
        if value is not None
    ]


def _step_id(rule: str) -> str:
    return fragment("step", rule)


def _control_id(record: Record) -> str:
    return fragment("control", record.name)
