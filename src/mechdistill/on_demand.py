"""Names that a package offers without loading the modules that define them.

The code of a rule is what its script imports, and a script that imports any module of a package
imports the package's `__init__` too: all that this one loaded would belong to every such rule.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_demand(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package (PEP 562).

    Args:
        package: its `__name__`.
        homes: name that it offers -> its module that defines it, loaded when the name is first
            asked for.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names
