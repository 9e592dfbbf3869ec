"""A model of a study as a folder that other programs load: weights, configuration, tokenizer."""

from __future__ import annotations

from pathlib import Path

from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.errors import InputError
from mechdistill.models.loading import load_model


def write_servable(weights: Path, config: Path, tokenizer: Path, folder: Path) -> None:
    """Write what `from_pretrained`, vLLM and `transformers serve` read.

    Raises:
        InputError: an input is missing or damaged, or `folder` holds something already.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there already", "name another folder, or move it away")
    words = load_tokenizer(tokenizer)
    model = load_model(weights, config)
    for settings in (model.config, model.generation_config):
        settings.eos_token_id, settings.pad_token_id = words.eos_token_id, words.pad_token_id
    model.save_pretrained(folder)
    words.save_pretrained(folder)
