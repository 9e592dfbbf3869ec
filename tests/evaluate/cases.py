"""The worked cases of metrics_cases.json: inputs, expected values, tolerances, sources."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

_FILE = Path(__file__).with_name("metrics_cases.json")


def cases(*metrics: str) -> list[Any]:
    """Parameters for `pytest.mark.parametrize`, one a case of the named metrics."""
    found = [case for case in json.loads(_FILE.read_text())["cases"] if case["metric"] in metrics]
    assert found, metrics
    return [pytest.param(case, id=case["id"]) for case in found]


def agrees(value: Any, case: dict[str, Any], *keys: str) -> bool:
    """Whether a value is the case's expected one (its entry under `keys`), "nan" being nan."""
    expected = case["expected"]
    for key in keys:
        expected = expected[key]
    tolerance = case["tol"]
    if expected == "nan":
        return math.isnan(value)
    return np.allclose(value, expected, rtol=tolerance["rel"], atol=tolerance["abs"])
