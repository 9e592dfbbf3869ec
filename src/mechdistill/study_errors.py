"""What is wrong with a study, said in the words of its files."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from mechdistill.errors import InputError

Schema = Mapping[str, Any]
Location = tuple[int | str, ...]


@dataclass(frozen=True)
class Layer:
    """Values and where they were written, for example ``studies/smoke.yaml``."""

    source: str
    values: Mapping[str, Any]


def explain(error: ValidationError, schema: Schema, layers: Sequence[Layer]) -> InputError:
    """One readable error for everything that ``error`` found.

    Args:
        error: of validating the layers, merged.
        schema: JSON schema of the study, where the ranges are read from.
        layers: from the bottom to the top; the top one that holds a key is named for it.
    """
    found = error.errors(include_url=False)
    lines = [
        _line(one["type"], one["loc"], one["input"], one.get("ctx", {}), schema, layers)
        for one in found
        if not any(_lies_within(other["loc"], one["loc"]) for other in found)
    ]
    return InputError("\n  ".join(lines), "Correct what is named above, then run again.")


def _line(
    kind: str,
    location: Location,
    given: Any,
    context: Mapping[str, Any],
    schema: Schema,
    layers: Sequence[Layer],
) -> str:
    if kind == "value_error":  # several keys that do not fit together: all files may be involved
        sources = " + ".join(layer.source for layer in layers)
        return f"{sources}: {_dotted(location)}{': ' if location else ''}{context['error']}"
    where = f"{_source(location, layers)}: {_dotted(location)}"
    if kind == "extra_forbidden":
        keys = sorted(_node(schema, location[:-1]).get("properties", {}))
        near = difflib.get_close_matches(str(location[-1]), keys, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        return f"{where} is an unknown key ({hint}keys there: {', '.join(keys)})"
    allowed = _describe(_node(schema, location))
    if kind == "missing":
        return f"{where} is missing (give {allowed})"
    return f"{where} is {json.dumps(given, ensure_ascii=False, default=str)} (allowed: {allowed})"


def _lies_within(location: Location, section: Location) -> bool:
    return len(location) > len(section) and location[: len(section)] == section


def _dotted(location: Location) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _source(location: Location, layers: Sequence[Layer]) -> str:
    """The top layer that writes the key at ``location``; the bottom one if none does."""
    keys = [part for part in location if isinstance(part, str)]
    for layer in reversed(layers):
        here: Any = layer.values
        for key in keys:
            if not isinstance(here, Mapping) or key not in here:
                break
            here = here[key]
        else:
            return layer.source
    return layers[0].source


def _node(schema: Schema, location: Location) -> Schema:
    """The part of ``schema`` that describes the value at ``location``; empty if there is none."""
    here: Schema = schema
    for part in location:
        here = here.get("items", {}) if isinstance(part, int) else _member(here, part)
        if "anyOf" in here:  # a value or null
            here = next(choice for choice in here["anyOf"] if choice.get("type") != "null")
        if "$ref" in here:
            here = schema["$defs"][here["$ref"].rsplit("/", 1)[-1]]
    return here


def _member(node: Schema, key: str) -> Schema:
    """What ``node`` says of ``key``: of a named one, or of any key that it takes."""
    named: Schema = node.get("properties", {}).get(key, {})
    other = node.get("additionalProperties", {})
    return named or (other if isinstance(other, Mapping) else {})


_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "object": "a section",
}


def _describe(node: Schema) -> str:
    """What ``node`` allows, for example ``a number above 0``."""
    if "const" in node:
        return str(node["const"])
    if "enum" in node:
        return "one of " + ", ".join(map(str, node["enum"]))
    if node.get("type") == "array":
        least = f" of at least {node['minItems']}" if "minItems" in node else ""
        return f"a list{least}, each {_describe(node['items'])}"
    if node.get("type") == "object":
        return "a section with the keys " + ", ".join(node.get("properties", {}))
    text = _KINDS.get(str(node.get("type")), "another value")
    bounds = [
        f"{words} {node[key]}"
        for key, words in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
            ("multipleOf", "a multiple of"),
        )
        if key in node
    ]
    if "pattern" in node:
        bounds.append(f"matching {node['pattern']}")
    return " ".join([text, " and ".join(bounds)]).strip()
