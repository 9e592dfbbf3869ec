"""Every leaf of the schema of parameters, and another legal value for it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from mechdistill.study import Study

ZERO = {
    "micro_batch": 4,
    "precision": "bfloat16",
    "offload": True,
    "gradient_checkpointing": False,
}

LISTS = {"number": 20, "sweep": [], "force_gold": True, "list_first": True}

OTHER_VALUES: dict[str, list[Any]] = {
    "data.candidates": [LISTS],
    "distil.deepspeed": [ZERO],
    "distil.methods": [["vanilla", "mech", "p1_only"], ["vanilla", "mech"]],
    "distil.seeds": [[0, 1]],
    "distil.student_tokenizer": [{"model": "bpe", "vocabulary": 800}],
    "evaluate.simulator.checkpoint.files": [{"model.safetensors": "1" * 64}],
    "teacher.checkpoint.files": [{"SmolLM2-135M-Instruct.Q4_1.gguf": "1" * 64}],
    "teacher.fine_tuning.lora": [{"rank": 2, "alpha": 4.0}],
}
"""Values to try of leaves whose type alone does not tell any."""

FAMILIES = ["qwen3", "gemma2", "llama"]

UNCHANGEABLE = {
    "study": "names the folder of the results: another name is another study",
    "text_encoder.name": "one encoder is known",
    "distil.student_tokenizer.model": "one model is known",
    "data.world.name": "a world comes with a section of its own, so never alone",
    "data.foldoc": "comes with its world",
    "data.source": "comes with its world",
    "teacher.architecture": "comes with a training",
    "teacher.training": "comes with an architecture",
    "teacher.checkpoint": "comes with a fine-tuning",
    "teacher.fine_tuning": "comes with a checkpoint",
    "teacher.generation.backend": "comes with its server",
    "teacher.generation.server": "comes with its backend",
    "evaluate.simulator.checkpoint": "comes with its kind",
    "evaluate.simulator.kind": "comes with its checkpoint",
}
"""Leaves and optional sections that no study can change alone, and why."""


def leaves(
    schema: Mapping[str, Any] | None = None, node: Mapping[str, Any] | None = None, path: str = ""
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Dotted name and schema of every leaf, and of every section that may be null."""
    schema = Study.model_json_schema() if schema is None else schema
    node = schema if node is None else node
    if "anyOf" in node:
        given, *_ = (kind for kind in node["anyOf"] if kind.get("type") != "null")
        if "$ref" not in given:
            yield path, {**given, "nullable": {"type": "null"} in node["anyOf"]}
            return
        yield path, {"section": True}
        node = given
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    if "properties" not in node:
        yield path, node
        return
    for name, below in node["properties"].items():
        yield from leaves(schema, below, f"{path}.{name}".lstrip("."))


def there(study: Mapping[str, Any], leaf: str) -> bool:
    """Whether the study has the section that the leaf belongs to."""
    here: Any = study
    *sections, _ = leaf.split(".")
    for name in sections:
        here = here.get(name)
        if here is None:
            return False
    return True


def value(study: Mapping[str, Any], leaf: str) -> Any:
    """Value of a leaf; null where the study leaves an optional one out."""
    here: Any = study
    for name in leaf.split("."):
        here = here.get(name)
        if here is None:
            return None
    return here


def override(leaf: str, other: Any) -> dict[str, Any]:
    """The nested mapping that gives the leaf this value."""
    nested = other
    for name in reversed(leaf.split(".")):
        nested = {name: nested}
    return dict(nested)


def other_value(study: Mapping[str, Any], leaf: str, kind: Mapping[str, Any]) -> Any:
    """A value that the leaf may take in this study while all else stays; null where it may not.

    Null itself is given as `"null"`.
    """
    now = value(study, leaf)
    for candidate in _candidates(leaf, kind, now):
        try:
            changed = Study.model_validate_json(json.dumps(with_value(study, leaf, candidate)))
        except ValidationError:
            continue
        if value(changed.model_dump(mode="json"), leaf) != now:
            return "null" if candidate is None else candidate
    return None


def with_value(study: Mapping[str, Any], leaf: str, other: Any) -> dict[str, Any]:
    """The study with another value of the leaf."""
    changed = copy.deepcopy(dict(study))
    here = changed
    *sections, last = leaf.split(".")
    for name in sections:
        here = here[name]
    here[last] = other
    return changed


def _candidates(leaf: str, kind: Mapping[str, Any], now: Any) -> Iterator[Any]:
    if leaf == "study":
        return
    yield from OTHER_VALUES.get(leaf, [])
    if leaf.endswith(".family"):
        yield from FAMILIES
    yield from kind.get("enum", [])
    type_ = kind.get("type")
    if type_ == "boolean":
        yield not now
    elif type_ == "integer":
        there = now or 0
        yield from (there + 1, there - 1, there * 2, there // 2, there + 2, 4)
    elif type_ == "number":
        there = 0.5 if now is None else now
        yield from (there * 1.25, there * 0.75, 0.5)
    elif type_ == "array":
        yield [*now, now[-1] + 1 if isinstance(now[-1], int) else now[-1]]
        yield now[:-1]
    elif type_ == "string":
        yield "1" * 64 if kind.get("pattern", "").endswith("{64}$") else f"{now or 'an'}-other"
    if now is not None and (kind.get("nullable") or kind.get("section")):
        yield None


def shown(other: Any) -> str:
    """A value as YAML's flow style, which JSON is."""
    return json.dumps(other)
