"""The distillation methods: one file each, named after the method, holding one class.

A new method is a new file here; nothing else changes. Its class derives from
`mechdistill.distil.method.Method` and says in two literals what it is called and which parameters
it uses beyond the trainer's, `distil.lambda_kl` always among them::

    class Mech(Method):
        name = "mech"
        parameters = ("distil.lambda_kl", "distil.lambda_p1", "distil.lambda_p2")

Further literals where a method needs them: `pools = "random"` gives it random heads instead of
those found by their scores; `needs` names artifacts that only some methods use; `settings_tried`
lists what tuning tries, or `tuned_as` names the method whose tuned weights it takes over. The
workflow reads these declarations without running the files (they load torch), so that a changed
parameter reruns exactly the methods that list it.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mechdistill.errors import InputError

if TYPE_CHECKING:
    from mechdistill.distil.method import Method

FOLDER = Path(__file__).parent
LAMBDA_KL = "distil.lambda_kl"
"""What `Method` itself reads: the weight of the teacher's distributions in L_CoT."""


def method_names() -> tuple[str, ...]:
    """All methods, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("[!_]*.py")))


def method_file(name: str) -> Path:
    """The file of a method.

    Raises:
        InputError: there is no such method.
    """
    path = FOLDER / f"{name}.py"
    if name not in method_names():
        raise InputError(
            f"there is no distillation method {name!r}",
            f"use one of {', '.join(method_names())} in distil.methods, or add {path}",
        )
    return path


def declared_parameters(name: str) -> tuple[str, ...]:
    """Dotted keys that a method uses beyond the trainer's, read from its file without running it.

    Raises:
        InputError: there is no such method, its file is no Python, its declaration is not two
            literals, or what every method reads is missing there.
    """
    keys: tuple[str, ...] = _declaration(name)["parameters"]
    if LAMBDA_KL not in keys:
        raise InputError(
            f"{method_file(name)}: parameters lacks {LAMBDA_KL!r}, which every method reads",
            "add it there; a method with a loss of its own need not use it",
        )
    return keys


def declared_pools(name: str) -> str:
    """Which heads a method's losses look at: "found" or "random".

    Raises:
        InputError: as `declared_parameters`, or the method names another kind of pool.
    """
    kind = _declaration(name).get("pools", "found")
    if kind not in ("found", "random"):
        raise InputError(
            f"{method_file(name)}: pools is {kind!r}", 'write pools = "random", or leave it out'
        )
    return str(kind)


def declared_needs(name: str) -> tuple[str, ...]:
    """Artifacts that a method's students are trained from beyond those of every student.

    Raises:
        InputError: as `declared_parameters`.
    """
    return tuple(_declaration(name).get("needs", ()))


def declared_settings(name: str) -> tuple[dict[str, Any], ...]:
    """Parameters that each setting of a method's tuning changes; the first changes none.

    Raises:
        InputError: as `declared_parameters`, or a setting changes what the method does not use.
    """
    declaration = _declaration(name)
    settings: tuple[dict[str, Any], ...] = tuple(declaration.get("settings_tried", ({},)))
    foreign = {key for setting in settings for key in setting} - {*declaration["parameters"]}
    if foreign or settings[:1] != ({},):
        raise InputError(
            f"{method_file(name)}: settings_tried begins with {settings[:1]}, and changes "
            f"{', '.join(sorted(foreign)) or 'only its own parameters'}",
            "begin with {} (the study's own values) and change parameters of the method alone",
        )
    return settings


def tuned_method(name: str) -> str:
    """The method whose tuning a method uses: its own, or the one it is a part of.

    Raises:
        InputError: as `declared_parameters`, also of the other method.
    """
    other = str(_declaration(name).get("tuned_as", "")) or name
    method_file(other)
    return other


def load_method(name: str) -> type[Method]:
    """The class of a method.

    Raises:
        InputError: there is no such method, or its file holds no class of this name.
    """
    declared_parameters(name)
    module = importlib.import_module(f"{__name__}.{name}")
    (found,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type) and vars(value).get("name") == name
    )
    return found


def _declaration(name: str) -> dict[str, Any]:
    """The literals of a method's class."""
    path = method_file(name)
    for node in _parsed(path).body:
        if isinstance(node, ast.ClassDef):
            literals = _literals(node)
            keys = literals.get("parameters")
            if literals.get("name") != name or not isinstance(keys, tuple | list):
                continue
            if all(isinstance(key, str) for key in keys):
                return {**literals, "parameters": tuple(keys)}
    raise InputError(
        f"{path} declares no method {name!r}",
        f'give its class the literals  name = "{name}"  and  parameters = ("distil....", ...)',
    )


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        where = f"{path}, line {error.lineno or 1}"
        raise InputError(f"{where}: {error.msg}", "mend that line") from error
    except ValueError as error:  # a zero byte, or no UTF-8
        raise InputError(f"{path} is no Python: {error}", "save it as UTF-8 text") from error


def _literals(node: ast.ClassDef) -> dict[str, object]:
    """Class attributes that are assigned literals."""
    found: dict[str, object] = {}
    for statement in node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            try:
                found[statement.targets[0].id] = ast.literal_eval(statement.value)
            except ValueError:
                continue
    return found
