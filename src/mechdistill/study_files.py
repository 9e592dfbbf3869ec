"""The files that a study is written in, and how they lie on each other.

At the bottom lies `params.yaml`, on top `studies/NAME.yaml`. Between them lie the overlays that the
top one names under `extends`, so that studies that share most numbers do not repeat them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mechdistill.artifacts import BASE_STUDY
from mechdistill.errors import InputError
from mechdistill.study_errors import Layer
from mechdistill.yaml_mapping import read_yaml_mapping

BASE_FILE = "params.yaml"
OVERLAY_FOLDER = "studies"
EXTENDS = "extends"
"""Key of an overlay that lies on others: their names, the last one on top."""
MEMBERS = "members"
"""Key of a study that joins others (mechdistill.joined_study) and is no overlay."""


def study_names(root: Path) -> tuple[str, ...]:
    """Names of the studies under ``root``: that of params.yaml, then the overlays, sorted."""
    base = base_name(root)
    return (base, *(name for name in overlay_names(root) if name != base))


def overlay_names(root: Path) -> list[str]:
    """Names of the files in studies/, sorted."""
    return sorted(path.stem for path in (root / OVERLAY_FOLDER).glob("*.yaml"))


def base_name(root: Path) -> str:
    """Name of the study of params.yaml."""
    return str(read_yaml_mapping(root / BASE_FILE).get("study", BASE_STUDY))


def study_layers(name: Any, root: Path) -> list[Layer]:
    """What the study `name` is made of, from the bottom to the top.

    That is params.yaml, the overlays that its own one extends in the order given, and its own one.

    Raises :class:`InputError`: there is no such study, it joins others, or it extends what it
    cannot.
    """
    base = read_yaml_mapping(root / BASE_FILE)
    layers = [Layer(BASE_FILE, base)]
    if name == base.get("study"):
        return layers
    overlay = read_overlay(name, root)
    _refuse_joined(overlay, f"{overlay.source} joins other studies")
    for number, parent in enumerate(_extended(overlay)):
        where = f"{overlay.source}: {EXTENDS}[{number}] names {parent!r}"
        there = overlay_names(root)
        if parent not in there:
            raise InputError(f"{where}: there is no such file", name_some(there))
        below = read_overlay(parent, root)
        _refuse_joined(below, f"{where}, which joins other studies")
        if EXTENDS in below.values:
            raise InputError(
                f"{where}, which extends others itself",
                "Name those here as well: an overlay that is extended extends none.",
            )
        layers.append(Layer(below.source, _without(below.values, "study")))
    layers.append(Layer(overlay.source, _without(overlay.values, EXTENDS)))
    return layers


def read_overlay(name: Any, root: Path) -> Layer:
    """The file of the study `name`, which says that name.

    Raises :class:`InputError`: there is no such study, or its file says another name.
    """
    names = study_names(root)
    if name not in names:
        raise InputError(f"there is no study {name!r}", f"Choose one of: {', '.join(names)}.")
    file = f"{OVERLAY_FOLDER}/{name}.yaml"
    values = read_yaml_mapping(root / file)
    if values.setdefault("study", name) != name:
        raise InputError(
            f"{file}: study is {values['study']!r}", f"Write `study: {name}`, as the file."
        )
    return Layer(file, values)


def name_some(names: Sequence[str]) -> str:
    """The remedy where a study is named that is not there."""
    return f"Name some of: {', '.join(names)}."


def _extended(overlay: Layer) -> list[str]:
    names = overlay.values.get(EXTENDS, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        given = json.dumps(names, ensure_ascii=False, default=str)
        raise InputError(
            f"{overlay.source}: {EXTENDS} is {given} (allowed: a list of names)",
            f"Write for example `{EXTENDS}: [smoke]`, for what stands in studies/smoke.yaml.",
        )
    if len(set(names)) < len(names):
        raise InputError(
            f"{overlay.source}: {EXTENDS} is {names}: each may stand there once", "Drop one."
        )
    return names


def _refuse_joined(overlay: Layer, what: str) -> None:
    if MEMBERS in overlay.values:
        raise InputError(what, "Name a study that has parameters of its own, such as a member.")


def _without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}
