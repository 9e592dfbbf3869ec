"""The data set that a study's section `data.source` names: checked, then read."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mechdistill.artifacts import read_json
from mechdistill.data.sources import mimic_iii, mimic_iv
from mechdistill.data.sources.collection import Collection
from mechdistill.data.sources.counting import Tally
from mechdistill.data.sources.extreme import check_extreme, files_of, read_extreme
from mechdistill.data.sources.mimic import (
    Tables,
    check_mimic,
    mimic_collection,
    open_mimic_iii,
    open_mimic_iv,
)
from mechdistill.data.sources.published import EXTREME, MIMIC_III, MIMIC_IV, compare, other_version
from mechdistill.digests import sha256_of
from mechdistill.errors import InputError

PUBLISHED = {"mimic-iv": MIMIC_IV, "mimic-iii": MIMIC_III, "extreme": EXTREME}


@dataclass(frozen=True)
class Brought:
    """The section `data.source`, as far as reading needs it; see `mechdistill.study.Source`."""

    name: str
    folder: Path
    version: str
    split_folder: Path | None
    least_documents: int
    historical_codes: bool

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> "Brought":
        """From the values of the section."""
        split = section["split_folder"]
        return cls(
            section["name"],
            Path(section["folder"]),
            section["version"],
            None if split is None else Path(split),
            section["least_documents"],
            section["historical_codes"],
        )

    def files(self) -> dict[str, Path]:
        """The files that are read, by name; InputError if one is missing."""
        if self.name == "extreme":
            return files_of(self.folder)
        module = mimic_iv if self.name == "mimic-iv" else mimic_iii
        return {name: table.path for name, table in module.tables_of(self.folder).items()}

    def check(self) -> Tally:
        """Read every file and keep nothing.

        Raises:
            InputError: the first thing that is not as the format has it.
        """
        if self.name == "extreme":
            return check_extreme(self.folder)
        return check_mimic(self._tables(), self.least_documents)

    @contextmanager
    def collection(self, work: Path) -> Iterator[Collection]:
        """Documents and labels; texts of admissions lie without a name in the folder `work`."""
        if self.name == "extreme":
            yield read_extreme(self.folder)
            return
        with mimic_collection(self._tables(), self.least_documents, work) as found:
            yield found

    def _tables(self) -> Tables:
        if self.name == "mimic-iv":
            return open_mimic_iv(self.folder, self.split_folder)
        return open_mimic_iii(self.folder, self.split_folder, self.historical_codes)


def checked(brought: Brought) -> dict[str, Any]:
    """What `check_source` writes: files, counts beside the published ones, warnings."""
    files = brought.files()
    tally = brought.check()
    published = PUBLISHED[brought.name]
    warnings = list(tally.warnings)
    if brought.version not in published:
        warnings.append(
            f"no counts of version {brought.version} are published here (there are those of "
            f"{', '.join(published)})"
        )
    if other := other_version(tally.counts, published, brought.version):
        warnings.append(f"the rows are those of version {other}, not {brought.version}")
    counts = compare(tally.counts, published.get(brought.version, {}))
    return {
        "source": brought.name,
        "version": brought.version,
        "files": {
            name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
            for name, path in files.items()
        },
        "counts": [asdict(count) for count in counts],
        "warnings": warnings,
    }


def require_checked(brought: Brought, path: str | Path) -> None:
    """Raise an InputError unless the files are those that were checked (by their sizes)."""
    sizes = {name: entry["bytes"] for name, entry in read_json(path)["files"].items()}
    now = {name: file.stat().st_size for name, file in brought.files().items()}
    changed = sorted(name for name in {*sizes, *now} if sizes.get(name) != now.get(name))
    if changed:
        raise InputError(
            f"{brought.folder}: {', '.join(changed)} changed after the check ({path})",
            f"check again: rm {path}, and start the same command again",
        )


def count_lines(content: Mapping[str, Any]) -> list[str]:
    """The counts as lines for a person: `documents: 122279 (published: 122279)`."""
    lines = []
    for count in content["counts"]:
        beside = count["published"]
        if beside is not None:
            lines.append(f"{count['what']}: {count['found']} (published: {beside})")
        else:
            lines.append(f"{count['what']}: {count['found']}")
    return [*lines, *(f"note: {said}" for said in content["warnings"])]
