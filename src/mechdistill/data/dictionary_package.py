"""Where the dictionary lies: a folder that is named, the installed Debian package, or a copy of it.

The copy is fetched once, without root, by `apt-get download` and `dpkg-deb -x` into the user's
cache. No text of the dictionary is part of this project or of its results.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from mechdistill.data.dictd import dictionary_files
from mechdistill.errors import InputError

DICTIONARY, PACKAGE = "foldoc", "dict-foldoc"
INSTALLED = Path("/usr/share/dictd")
_REMEDY = (
    f"on Debian or Ubuntu run `apt-get install {PACKAGE}` (or `apt-get update` first, and let "
    f"mechdistill fetch it); elsewhere unpack usr/share/dictd of the package {PACKAGE} anywhere "
    "and give that folder as data.foldoc.folder"
)


def find_dictionary(folder: str | None) -> Path:
    """The folder that holds the dictionary's index and data.

    Args:
        folder: where to look and nowhere else; None looks for the installed package, then for a
            copy in the cache, and fetches that if need be.

    Raises:
        InputError: it is not there, and cannot be fetched.
    """
    if folder is not None:
        if not _holds(Path(folder)):
            raise InputError(
                f"data.foldoc.folder is {folder}, which has not both of "
                + " and ".join(path.name for path in dictionary_files(Path(), DICTIONARY)),
                _REMEDY,
            )
        return Path(folder)
    copy = cache_folder() / "usr/share/dictd"
    for place in (INSTALLED, copy):
        if _holds(place):
            return place
    fetch_package(cache_folder())
    return copy


def cache_folder() -> Path:
    """Folder of the unpacked package: in $XDG_CACHE_HOME, by default ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "mechdistill" / PACKAGE


def fetch_package(target: Path) -> None:
    """Download the package with apt and unpack it, as an ordinary user.

    Raises:
        InputError: apt or dpkg is missing, or one of them fails; what they said is in it.
    """
    missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if missing:
        raise InputError(
            f"the package {PACKAGE} is not installed, and {' and '.join(missing)}, which would "
            "fetch it, is not here",
            _REMEDY,
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        place = Path(temporary)
        _run(["apt-get", "download", PACKAGE], place)
        (package,) = place.glob("*.deb")
        _run(["dpkg-deb", "-x", package.name, "unpacked"], place)
        if not _holds(place / "unpacked/usr/share/dictd"):
            raise InputError(f"{package.name} holds no dictionary {DICTIONARY}", _REMEDY)
        if target.exists():  # half unpacked, or another process was faster
            shutil.rmtree(target)
        (place / "unpacked").replace(target)


def _holds(folder: Path) -> bool:
    return all(path.is_file() for path in dictionary_files(folder, DICTIONARY))


def _run(command: list[str], folder: Path) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=300)
    except subprocess.SubprocessError as error:
        said = str(getattr(error, "stderr", None) or error).strip().splitlines()
        raise InputError(
            f"the package {PACKAGE} is not installed, and `{' '.join(command[:2])}` failed: "
            f"{said[-1] if said else error}",
            _REMEDY,
        ) from error
