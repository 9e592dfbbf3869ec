"""A checkpoint of any origin as a plain model in fp32, and its tokenizer.

Quantised weights are dequantised by transformers; what is left of the quantisation in the
configuration would keep the model from being saved, so the model is built anew without it. No code
of a checkpoint is run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from mechdistill.errors import InputError
from mechdistill.models.families import family
from mechdistill.models.tap import attach


def plain_model(folder: Path, gguf: str | None) -> Any:
    """The model of a folder, attached to the tap, in evaluation mode and fp32.

    Args:
        gguf: file name of quantised weights in `folder`; None: safetensors.

    Raises:
        InputError: the configuration or the weights cannot be read, or no adapter knows the family.
    """
    source: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    if gguf is not None:
        source["gguf_file"] = gguf
    try:
        config = AutoConfig.from_pretrained(folder, **source)
    except Exception as error:  # transformers raises many kinds
        raise _unreadable(folder, gguf, error) from error
    adapter = family(config.model_type)
    try:
        loaded = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, use_safetensors=True, **source
        )
    except Exception as error:
        raise _unreadable(folder, gguf, error) from error
    plain = loaded.config.to_dict()
    for key in ("quantization_config", "_name_or_path", "_attn_implementation"):
        plain.pop(key, None)
    with torch.random.fork_rng(devices=[]):  # the weights drawn here are overwritten at once
        model = adapter.from_config(plain)
    model.load_state_dict(loaded.state_dict())
    return attach(model).float().eval()


def plain_tokenizer(folder: Path, gguf: str | None) -> Any:
    """The fast tokenizer of a folder.

    Raises:
        InputError: it cannot be read.
    """
    source: dict[str, Any] = {} if gguf is None else {"gguf_file": gguf}
    try:
        return AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, **source
        )
    except Exception as error:
        raise _unreadable(folder, gguf, error) from error


def _unreadable(folder: Path, gguf: str | None, error: Exception) -> InputError:
    what = folder if gguf is None else folder / gguf
    needs = (
        "config.json, .safetensors files and tokenizer.json in it"
        if gguf is None
        else ("the packages gguf and accelerate (envs/pretrained.txt) for it")
    )
    return InputError(
        f"transformers cannot read {what}: {type(error).__name__}: {error}", f"make sure of {needs}"
    )
