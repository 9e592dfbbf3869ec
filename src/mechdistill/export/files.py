"""The files of a crate as nodes of its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from mechdistill.audit.record import RUNS, File, Record
from mechdistill.export.entity import Entity, fragment
from mechdistill.provenance.metadata import VERSIONED

FORMATS = {
    ".cff": "application/yaml",
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".safetensors": "application/octet-stream",
    ".tex": "application/x-tex",
    ".toml": "application/toml",
    ".yaml": "application/yaml",
}
"""Suffix -> media type; all else is plain text."""
TEXT = "text/plain"
FOLDERS = ("src/", "workflow/", "envs/", f"{VERSIONED}/")
"""Named as a whole."""
ONE_BY_ONE = ("*", "studies/*", "provenance/*.json", f"{RUNS}/*/*.json")


def file_entity(path: str, held: File | None = None) -> Entity:
    """A file of the crate, with size and hash where it is one of the results."""
    suffix = PurePosixPath(path).suffix
    entity = {
        "@id": quote(path),
        "@type": "File",
        "name": path,
        "encodingFormat": FORMATS.get(suffix, TEXT),
    }
    if held is not None:
        entity |= {"contentSize": str(held.size), "sha256": held.sha256}
    return entity


def script_entity(script: str, commit: str) -> Entity:
    """The script of a rule: the tool that its jobs ran."""
    name = PurePosixPath(script).stem
    types = ["File", "SoftwareSourceCode"]
    return file_entity(script) | {"@type": types, "name": name, "version": commit}


def result_entities(records: Sequence[Record], files: Mapping[str, File]) -> dict[str, Entity]:
    """Path -> node of every file that a job read or wrote, in the crate or not.

    Args:
        records: of the jobs.
        files: the results that the crate holds.
    """
    named = [file for record in records for file in (*record.inputs, *record.outputs)]
    return {
        file.path: file_entity(file.path, files[file.path])
        if file.path in files
        else _absent_entity(file)
        for file in sorted(named, key=lambda file: file.path)
    }


def other_entities(folder: Path) -> list[Entity]:
    """What lies in the crate's folder beside results, Snakefile and the scripts that ran."""
    found = {path for pattern in ONE_BY_ONE for path in folder.glob(pattern) if path.is_file()}
    names = sorted(path.relative_to(folder).as_posix() for path in found)
    files = [file_entity(name) for name in names if name != "Snakefile"]
    for entity in files:
        if entity["@id"] == "README.md":
            entity["about"] = {"@id": "./"}
    folders = [path for path in FOLDERS if (folder / path).is_dir()]
    return [*({"@id": path, "@type": "Dataset", "name": path} for path in folders), *files]


def _absent_entity(file: File) -> Entity:
    return {
        "@id": fragment("absent", file.path),
        "@type": "CreativeWork",
        "name": file.path,
        "description": "not in this crate",
        "contentSize": str(file.size),
        "sha256": file.sha256,
    }
