"""Reading YAML files of parameters, more strictly than YAML itself does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from mechdistill.errors import InputError


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, with two traps taken out.

    YAML 1.1 reads ``1e-3`` as a string (it wants ``1.0e-3``), and PyYAML keeps the last of two
    equal keys without a word.
    """


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def _mapping_with_unique_keys(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    seen: set[str] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node)
        if not isinstance(key, str):  # `on`, `no` and `1` are not text to YAML
            problem = f"the key {key_node.value!r} is no text unless it is quoted"
        elif key in seen:
            problem = f"the key {key!r} is given twice"
        else:
            seen.add(key)
            continue
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
    loader.flatten_mapping(node)
    return {str(key): value for key, value in loader.construct_mapping(node, deep=True).items()}


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping_with_unique_keys)


def read_yaml_mapping(path: Path) -> dict[str, Any]:
    """The mapping that the YAML file at ``path`` holds; an empty file is an empty mapping.

    Raises :class:`~mechdistill.errors.InputError` when the file is missing, malformed, repeats a
    key, or holds something other than a mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(
            f"{path} does not exist", "Restore it, for example with `git checkout`."
        ) from error
    except IsADirectoryError as error:
        raise InputError(
            f"{path} is a directory, a file is expected", "Move it away and restore the file."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}", "Save it as UTF-8.") from error
    try:
        loaded = yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
        problem = error.problem or "it cannot be read"
        raise InputError(
            f"{path} is malformed YAML at {where}: {problem}",
            "Mend that line: `key: value`, two spaces a level, every key once.",
        ) from error
    except yaml.YAMLError as error:
        raise InputError(f"{path} is malformed YAML: {error}", "Mend the file.") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise InputError(
            f"{path} holds a {type(loaded).__name__}, not a mapping of keys to values",
            "Write it as `key: value` lines.",
        )
    return loaded
