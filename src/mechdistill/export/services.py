"""Servers that jobs asked, as nodes of the crate's graph: further instruments of their actions."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mechdistill.audit.record import Record
from mechdistill.export.entity import Entity, fragment, ids, links


def service_ids(record: Record) -> list[str]:
    """The `@id` of each server that a job asked, in the order in which it did."""
    return [
        fragment("service", record.name, str(number))
        for number, _ in enumerate(record.services, start=1)
    ]


def service_entities(records: Sequence[Record]) -> list[Entity]:
    """A node for each server, and one for each fact that it told of itself.

    A job that went on with another server, or the same one started anew, has a node for each.
    """
    return [
        entity
        for record in records
        for identity, facts in zip(service_ids(record), record.services, strict=True)
        for entity in _described(identity, facts)
    ]


def _described(identity: str, facts: dict[str, object]) -> list[Entity]:
    values: list[Entity] = [
        {
            "@id": f"{identity}/{name}",
            "@type": "PropertyValue",
            "name": name,
            "value": value if isinstance(value, str) else json.dumps(value),
        }
        for name, value in sorted(facts.items())
        if value is not None
    ]
    service: Entity = {
        "@id": identity,
        "@type": "SoftwareApplication",
        "name": f"server of {facts.get('model', 'a model')}",
        "applicationCategory": "model server",
        "softwareVersion": str(facts.get("version") or "not told"),
        "additionalProperty": links(ids(values)),
    }
    return [service, *values]
