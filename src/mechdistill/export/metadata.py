"""`ro-crate-metadata.json`: a finished study as a Provenance Run Crate.

RO-Crate 1.1 with the profiles Workflow RO-Crate 1.0 and Process, Workflow and Provenance Run Crate
0.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from mechdistill.audit.again import in_order
from mechdistill.audit.crate import DESCRIPTION
from mechdistill.audit.finding import Verdict
from mechdistill.audit.record import File, Record
from mechdistill.export.entity import Entity, ids, links
from mechdistill.export.files import TEXT, other_entities, result_entities, script_entity
from mechdistill.export.jobs import (
    ENGINE_RUN,
    HOMEPAGE,
    RUN,
    WORKFLOW,
    job_entities,
    job_id,
    run_entities,
    step_entities,
)
from mechdistill.export.services import service_entities
from mechdistill.export.values import Values, software_entities
from mechdistill.study import Study

CRATE = "https://w3id.org/ro/crate/1.1"
WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/provenance/0.5": ("Provenance Run Crate", "0.5"),
    WORKFLOW_CRATE: ("Workflow RO-Crate", "1.0"),
}
WORKFLOW_PROFILE = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
SNAKEMAKE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
RUN_TERMS = "https://w3id.org/ro/terms/workflow-run#"
MORE_TERMS = {term: f"{RUN_TERMS}{term}" for term in ("sha256", "resourceUsage")}
"""Terms that the context of RO-Crate 1.1 lacks."""
LICENCE, DEVELOPERS = "https://spdx.org/licenses/Apache-2.0", "#developers"


def crate_metadata(
    study: Study,
    records: Sequence[Record],
    files: Mapping[str, File],
    verdict: Verdict,
    folder: Path,
) -> Entity:
    """The content of `ro-crate-metadata.json`.

    Args:
        study: the study.
        records: of its jobs.
        files: of the results that the crate holds: path -> bytes.
        verdict: of the audit before the export.
        folder: the crate so far.
    """
    records = in_order(records)
    commit = ", ".join(sorted({str(record.git.get("commit")) for record in records}))
    values = Values(records)
    software = software_entities(records)
    steps = step_entities(records)
    tools = [script_entity(name, commit) for name in sorted({r.command[0] for r in records})]
    results = result_entities(records, files)
    others = other_entities(folder)
    held = [*ids(tools), *ids(others), *map(quote, files)]
    return {
        "@context": [f"{CRATE}/context", MORE_TERMS],
        "@graph": [
            _descriptor(),
            _root(study, records, verdict, held),
            *_named(),
            _workflow(commit, values, tools, steps, software),
            *tools,
            *steps,
            *others,
            *results.values(),
            *values.entities(),
            *software,
            *service_entities(records),
            *run_entities(study.study, records, results, values),
            *(entity for job in records for entity in job_entities(job, results, values)),
        ],
    }


def _descriptor() -> Entity:
    return {
        "@id": DESCRIPTION,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": links([CRATE, WORKFLOW_CRATE]),
    }


def _root(study: Study, records: Sequence[Record], verdict: Verdict, held: Iterable[str]) -> Entity:
    found = len(verdict.findings)
    audited = "clean" if verdict.clean else f"{found} findings, see provenance/audit.json"
    restricted = (
        " The data are restricted: of the results only the report is here, of all other files "
        "names, sizes and hashes."
    )
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": f"mechdistill: the study {study.study}",
        "description": (
            f"Results of {len(records)} jobs with the records, parameters, code and package "
            f"versions that made them. Audit of their bytes before the export: {audited}."
            f"{restricted if study.restricted else ''} To audit them again, in a checkout of the "
            "same commit: mechdistill audit FOLDER"
        ),
        "datePublished": max(record.ended for record in records).date().isoformat(),
        "license": {"@id": LICENCE},
        "conformsTo": links(PROFILES),
        "mainEntity": {"@id": WORKFLOW},
        "hasPart": links([WORKFLOW, *held]),
        "mentions": links([RUN, ENGINE_RUN, *map(job_id, records)]),
    }


def _named() -> list[Entity]:
    """What other nodes refer to: profiles, licence, language, developers."""
    profiles: list[Entity] = [
        {"@id": uri, "@type": "CreativeWork", "name": name, "version": version}
        for uri, (name, version) in PROFILES.items()
    ]
    return [
        *profiles,
        {"@id": DEVELOPERS, "@type": "Organization", "name": "mechdistill developers"},
        {
            "@id": LICENCE,
            "@type": "CreativeWork",
            "name": "Apache License 2.0",
            "description": (
                "Of the code and of what it computed. Texts in the results keep the licence of "
                "the data that they come from."
            ),
        },
        {"@id": SNAKEMAKE, "@type": "ComputerLanguage", "name": "Snakemake", "url": HOMEPAGE},
    ]


def _workflow(
    commit: str,
    values: Values,
    tools: Iterable[Entity],
    steps: Iterable[Entity],
    software: Iterable[Entity],
) -> Entity:
    return {
        "@id": WORKFLOW,
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
        "name": "mechdistill",
        "encodingFormat": TEXT,
        "programmingLanguage": {"@id": SNAKEMAKE},
        "conformsTo": {"@id": WORKFLOW_PROFILE},
        "version": commit,
        "author": {"@id": DEVELOPERS},
        "license": {"@id": LICENCE},
        "input": links(values.parameters()),
        "hasPart": links(ids(tools)),
        "step": links(ids(steps)),
        "softwareRequirements": links(ids(software)),
    }
