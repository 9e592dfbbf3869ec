"""Size of a saved model, read from its configuration alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mechdistill.artifacts import how_to_make, read_json
from mechdistill.errors import InputError


def layers_and_heads(config_path: str | Path) -> tuple[int, int]:
    """Numbers of layers, and of query heads a layer.

    Raises:
        InputError: the file is missing or damaged, or does not say.
    """
    layers, heads = _said(config_path, "num_hidden_layers", "num_attention_heads")
    return int(layers), int(heads)


def family_name(config_path: str | Path) -> str:
    """Name of the model's family, transformers' ``model_type``.

    Raises:
        InputError: the file is missing or damaged, or does not say.
    """
    return str(*_said(config_path, "model_type"))


def _said(config_path: str | Path, *keys: str) -> list[Any]:
    config = read_json(config_path)
    try:
        return [config[key] for key in keys]
    except KeyError as error:
        raise InputError(f"{config_path} has no {error}", how_to_make(config_path)) from error
