"""Whether the data of a study can be had on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mechdistill.data.dictionary_package import find_dictionary
from mechdistill.errors import InputError


def why_not_here(data: Mapping[str, Any]) -> str:
    """What is missing and what to do about it, in one line; "" if the data can be had.

    What can be fetched is fetched.

    Args:
        data: the section of that name of a study.
    """
    dictionary, source = data.get("foldoc"), data.get("source")
    if dictionary is not None:
        try:
            find_dictionary(dictionary["folder"])
        except InputError as error:
            return f"{error.what}. What to do: {error.remedy}"
    if source is not None and not Path(source["folder"]).is_dir():
        return (
            f"data.source.folder is {source['folder']}, which is no folder. What to do: put the "
            "published files there, or name the folder that has them"
        )
    return ""
