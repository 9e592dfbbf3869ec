"""Make, save and load the models of a study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mechdistill.artifacts import how_to_make, read_json, read_tensors, write_json, write_tensors
from mechdistill.errors import InputError
from mechdistill.models.families import family
from mechdistill.models.tap import attach


def build_model(
    architecture: Mapping[str, Any],
    *,
    vocab_size: int,
    pad_id: int,
    bos_id: int,
    eos_id: int,
    max_positions: int,
    seed: int,
) -> Any:
    """A model with fresh weights, attached to the tap, in training mode and fp32.

    Args:
        architecture: family, hidden_size, layers, heads, kv_heads, intermediate_size, rope_theta
            and head_dim (may be missing or None: hidden size / heads).
        seed: of the weights; the global random state is left as it was.

    Raises:
        InputError: the family is not known.
    """
    tokens = {"vocab_size": vocab_size, "pad": pad_id, "bos": bos_id, "eos": eos_id}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = family(architecture["family"]).build(architecture, tokens, max_positions)
    return attach(model).float().train()


def save_model(model: Any, weights_path: str | Path, config_path: str | Path) -> None:
    """Write weights (safetensors) and transformers' configuration (JSON)."""
    config = model.config.to_dict()
    config.pop("_attn_implementation", None)
    write_json(config_path, config)
    write_tensors(weights_path, dict(model.state_dict()))


def with_weights(weights_path: str | Path, config_path: str | Path, new: dict[str, Any]) -> Any:
    """A saved model with other values of its parameters.

    Args:
        new: by name, exactly the model's parameters; one that two modules share stands there once.
    """
    model = load_model(weights_path, config_path)
    own = dict(model.named_parameters())
    if own.keys() != new.keys():
        raise ValueError(f"other parameters: {', '.join(sorted(own.keys() ^ new.keys()))}")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(new[name])
    return model


def check_saved(model: Any, weights_path: str | Path, config_path: str | Path) -> None:
    """See that a model that was just saved comes back as it is.

    Raises:
        InputError: it does not; the weights are removed, so that nothing goes on with them.
    """
    again = load_model(weights_path, config_path).state_dict()
    own = model.state_dict()
    for name in own.keys() | again.keys():
        if name not in own or name not in again or not torch.equal(own[name].cpu(), again[name]):
            Path(weights_path).unlink()
            raise InputError(
                f"{weights_path}: {name} is not read back as it was written",
                "look after the disk, and start the same command again",
            )


def load_model(weights_path: str | Path, config_path: str | Path) -> Any:
    """A saved model, attached to the tap, in evaluation mode and fp32.

    Raises:
        InputError: a file is missing or damaged, the configuration is none of a known family, or
            the weights do not fit it.
    """
    config = read_json(config_path)
    weights, _ = read_tensors(weights_path)
    try:
        with torch.random.fork_rng(devices=[]):  # the weights drawn here are overwritten at once
            model = family(config["model_type"]).from_config(config)
    except Exception as error:  # transformers raises many kinds, also some of its own
        raise InputError(
            f"{config_path} is no configuration of a model ({type(error).__name__}: {error})",
            how_to_make(config_path),
        ) from error
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise InputError(
            f"{weights_path} does not fit the architecture in {config_path}",
            "delete both files and make them again in one run of the workflow",
        ) from error
    return attach(model).float().eval()
