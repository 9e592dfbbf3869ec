"""Links from the report to the pages of the audit, and the places that they lead to.

The pages are made after the report; what a link says does not depend on them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

AUDIT_PAGE = "../audit/audit.html"
TRACE_PAGE = "../audit/trace.html"


def anchor(*names: object) -> str:
    """A place on the trace page, called after what stands there.

    >>> anchor("mech", "vanilla,cwt", "", "focus")
    'mech.vanilla_cwt.focus'
    """
    return ".".join(re.sub(r"[^\w.+-]+", "_", str(name)) for name in names if name)


def row_anchor(row: Mapping[str, Any]) -> str:
    """That of a row of a tidy table: a method's value, or its gain over a baseline.

    In a joined study behind the member, or the data set of which all students are averaged.

    >>> row_anchor({"method": "mech", "baseline": "", "metric": "focus"})
    'mech.focus'
    """
    place = row.get("member") or row.get("data_set")
    return anchor(place, row["method"], row.get("baseline"), row["metric"])


def trace_of(*names: object) -> str:
    """Where the trace page tells what `names` come from, as a link of the report."""
    return f"{TRACE_PAGE}#{anchor(*names)}"
