"""Parameters and software of a study's jobs as nodes of the crate's graph."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mechdistill.audit.record import Record
from mechdistill.export.entity import Entity, fragment, links


class Values:
    """The parameters that jobs ran with: of each key one value, unless jobs ran with several."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._texts: dict[str, list[str]] = {}
        for key, text in sorted({pair for record in records for pair in _pairs(record)}):
            self._texts.setdefault(key, []).append(text)

    def of(self, record: Record) -> list[str]:
        """The `@id` of every value that a job ran with."""
        return [self._id(key, text) for key, text in _pairs(record)]

    def all(self) -> list[str]:
        """The `@id` of every value."""
        return [self._id(key, text) for key, texts in self._texts.items() for text in texts]

    def parameters(self) -> list[str]:
        """The `@id` of every parameter."""
        return [fragment("parameter", key) for key in self._texts]

    def entities(self) -> list[Entity]:
        """Parameters, and their values as JSON."""
        formal = [
            {
                "@id": fragment("parameter", key),
                "@type": "FormalParameter",
                "name": key,
                "additionalType": "PropertyValue",
                "workExample": links(self._id(key, text) for text in texts),
            }
            for key, texts in self._texts.items()
        ]
        actual = [
            {
                "@id": self._id(key, text),
                "@type": "PropertyValue",
                "name": key,
                "value": text,
                "exampleOfWork": {"@id": fragment("parameter", key)},
            }
            for key, texts in self._texts.items()
            for text in texts
        ]
        return [*formal, *actual]

    def _id(self, key: str, text: str) -> str:
        number = self._texts[key].index(text)
        return fragment("value", key, *([str(number + 1)] if number else []))


def software_entities(records: Sequence[Record]) -> list[Entity]:
    """Python and the packages that jobs ran with."""
    pairs = {pair for record in records for pair in record.environment.packages.items()}
    pairs |= {("Python", record.environment.python) for record in records}
    return [
        {
            "@id": fragment("software", name, version),
            "@type": "SoftwareApplication",
            "name": name,
            "softwareVersion": version,
        }
        for name, version in sorted(pairs)
    ]


def _pairs(record: Record) -> list[tuple[str, str]]:
    return [(key, json.dumps(value, sort_keys=True)) for key, value in record.parameters.items()]
