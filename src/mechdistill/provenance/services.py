"""Services outside the process that a job asked, for its record."""

from __future__ import annotations

from typing import Any

asked: list[dict[str, Any]] = []
"""What each said of itself: name, version, and whatever else tells it from another. No secrets."""
