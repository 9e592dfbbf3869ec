"""The parameters of one job, as its script sees them.

A rule hands its script one canonical JSON object of dotted key -> value, with exactly the keys
that the script may use. What is not declared cannot be read, so a change of any value that a
script depends on is always visible to the workflow; what is declared and never read would cause
needless reruns, and :meth:`Parameters.unread` lists it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mechdistill.errors import InputError

opened: list[Parameters] = []
"""Every object that `from_json` made in this process: the run record names unread keys."""


class Parameters:
    """The declared keys and their values; remembers which keys were read.

    Not a ``Mapping`` on purpose: ``get(key, default)`` would let a script have defaults.

    >>> p = Parameters.from_json('{"distil.lambda_p1": 0.3, "seed": 7}')
    >>> p["distil.lambda_p1"]
    0.3
    >>> p.unread()
    ('seed',)
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)
        self._read: set[str] = set()

    @classmethod
    def from_json(cls, text: str) -> Parameters:
        """Parameters from the JSON object that a rule passes as ``--params``.

        Raises :class:`~mechdistill.errors.InputError` when ``text`` is no JSON object.
        """
        remedy = (
            "Pass the object that the rule passes: a JSON object of dotted keys, "
            """such as '{"distil.lambda_p1": 0.3}'."""
        )
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"--params is not valid JSON: {error}", remedy) from error
        if not isinstance(values, dict):
            raise InputError(f"--params is a JSON {type(values).__name__}, not an object", remedy)
        parameters = cls(values)
        opened.append(parameters)
        return parameters

    def __getitem__(self, key: str) -> Any:
        """Value of ``key``; a section that was declared whole comes as a dict.

        Raises ``KeyError`` naming the key when the rule did not declare it.
        """
        if key not in self._values:
            declared = ", ".join(sorted(self._values)) or "none"
            raise KeyError(f"parameter {key!r} is not declared by the rule (declared: {declared})")
        self._read.add(key)
        return self._values[key]

    def __contains__(self, key: str) -> bool:
        """Whether the rule declared ``key``; asking does not count as reading."""
        return key in self._values

    def unread(self) -> tuple[str, ...]:
        """Keys that were declared and have not been read, sorted."""
        return tuple(sorted(set(self._values) - self._read))
