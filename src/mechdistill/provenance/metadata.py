"""Snakemake's own notes on finished files: the folder that `.snakemake/metadata` links to."""

from __future__ import annotations

import base64
from pathlib import Path

from mechdistill.errors import InputError

METADATA = Path(".snakemake", "metadata")
INCOMPLETE = Path(".snakemake", "incomplete")
VERSIONED = Path("provenance", "metadata")
"""Where `METADATA` leads to."""
LONGEST = 254
"""Characters of a note's file name."""


def refuse_unrecorded_results(root: Path, study: str) -> None:
    """Refuse results that came here without their notes.

    Snakemake takes a file without notes for up to date whatever the parameters and the code are:
    results copied from another version would be reported as results of this one.

    Raises:
        InputError: `results/STUDY` holds files that no job of this checkout is known to have made,
            or of which a power cut left half a note: Snakemake takes that for none.
    """
    results = root / "results" / study
    files = sorted(path.relative_to(root) for path in results.rglob("*") if path.is_file())
    strange = [
        path
        for path in files
        if not path.name.startswith(".")
        and not note_path(root / METADATA, path).is_file()
        and not note_path(root / INCOMPLETE, path).exists()
    ]
    for path in files:
        note = note_path(root / METADATA, path)
        if note.is_file() and not note.read_bytes().endswith(b"}"):
            raise InputError(
                f"Snakemake's note on {path} is cut off, so that changed parameters or code would "
                "go unseen",
                f"bring it back (git checkout provenance/metadata), or make the file anew "
                f"(rm {path})",
            )
    if strange:
        more = f" and {len(strange) - 1} more files have" if len(strange) > 1 else " has"
        raise InputError(
            f"{strange[0]}{more} no record here of the parameters and the code that made it, "
            "so that nobody can tell whether it belongs to this version",
            f"bring its notes back (git checkout provenance/metadata), or make it anew "
            f"(rm -r results/{study})",
        )


def notes_folder(root: Path) -> Path:
    """Where the notes lie in a checkout, or in an exported study, which holds no state."""
    return root / (METADATA if (root / METADATA).is_dir() else VERSIONED)


def note_path(folder: Path, path: Path) -> Path:
    """Where Snakemake keeps its note on `path`: base64, cut into folders where too long a name."""
    name = base64.urlsafe_b64encode(path.as_posix().encode()).decode()
    parts = [name[start : start + LONGEST] for start in range(0, len(name), LONGEST)]
    return folder.joinpath(*(f"@{part}" for part in parts[:-1]), parts[-1])


def noted_files(folder: Path) -> list[str]:
    """The files that Snakemake keeps a note on in `folder`, sorted."""
    found = []
    for note in folder.rglob("*"):
        parts = note.relative_to(folder).parts
        name = "".join((*(part.removeprefix("@") for part in parts[:-1]), parts[-1]))
        if note.is_file() and not name.startswith("."):
            try:
                found.append(base64.urlsafe_b64decode(name).decode())
            except ValueError:  # no note: something else that lies there
                continue
    return sorted(found)
