"""Size of a saved model, read from its configuration alone."""

from __future__ import annotations

from pathlib import Path

from mechdistill.artifacts import how_to_make, read_json
from mechdistill.errors import InputError


def layers_and_heads(config_path: str | Path) -> tuple[int, int]:
    """Numbers of layers, and of query heads a layer.

    Raises:
        InputError: the file is missing or damaged, or does not say.
    """
    config = read_json(config_path)
    try:
        return int(config["num_hidden_layers"]), int(config["num_attention_heads"])
    except KeyError as error:
        raise InputError(
            f"{config_path} has no {error}",
            how_to_make(config_path),
        ) from error
