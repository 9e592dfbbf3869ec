"""An exported study (`mechdistill export`) as something to audit: what is one, what it may lack."""

from __future__ import annotations

import json
from pathlib import Path

from mechdistill.artifacts import RESULTS
from mechdistill.errors import InputError
from mechdistill.joined_study import JoinedStudy
from mechdistill.study import Study

DESCRIPTION = "ro-crate-metadata.json"
"""The file that makes a folder an RO-Crate."""


def crate_folder(root: Path, asked: str) -> Path | None:
    """The crate that `asked` names, relative to `root`; None where it is the name of a study."""
    folder = root / asked
    is_study = "/" not in asked and (root / RESULTS / asked).is_dir()
    return folder.resolve() if (folder / DESCRIPTION).is_file() and not is_study else None


def study_in(crate: Path) -> str:
    """Name of the study that a crate holds.

    Raises:
        InputError: it holds none, or several.
    """
    names = sorted(path.name for path in (crate / RESULTS).glob("*") if path.is_dir())
    if len(names) != 1:
        raise InputError(
            f"{crate} holds the results of {len(names) or 'no'} studies, one is expected",
            "give the folder that `mechdistill export` wrote, whole",
        )
    return names[0]


def commits(crate: Path) -> str:
    """What the description of a crate says of the commits of its code."""
    try:
        nodes = json.loads((crate / DESCRIPTION).read_bytes())["@graph"]
        return next(str(node["version"]) for node in nodes if node["@id"] == "Snakefile")
    except (ValueError, KeyError, TypeError, StopIteration):
        return f"{DESCRIPTION} does not name it"


def kept_back(path: str, study: Study | JoinedStudy) -> bool:
    """Whether an export leaves a file of the results where it is.

    Of restricted data everything but the report and the pages of its audit, which show no text:
    notes, traces, rows of single examples, and models, which may have learnt texts by heart.
    """
    shown = tuple(f"{RESULTS}/{study.study}/{folder}/" for folder in ("report", "audit"))
    return study.restricted and not path.startswith(shown)
