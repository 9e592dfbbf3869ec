"""Nodes of the crate's graph, and how they name each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

Entity = dict[str, Any]
"""A node, with `@id` and `@type`."""


def fragment(kind: str, *names: str) -> str:
    """The `@id` of what is no file.

    >>> fragment("job", "train_student-mech-0")
    '#job/train_student-mech-0'
    """
    return f"#{kind}/{'/'.join(map(quote, names))}"


def links(identities: Iterable[str]) -> Entity | list[Entity]:
    """References to nodes; a single one is no list, as RO-Crate asks for.

    >>> links(["LICENSE"])
    {'@id': 'LICENSE'}
    """
    found: Sequence[Entity] = [{"@id": identity} for identity in identities]
    return found[0] if len(found) == 1 else list(found)


def ids(entities: Iterable[Entity]) -> list[str]:
    """The `@id` of each."""
    return [entity["@id"] for entity in entities]
