"""A model that belongs to somebody else: used for a while, given back as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import PreTrainedModel

from mechdistill.errors import InputError
from mechdistill.models.families import check
from mechdistill.models.tap import attach


@contextmanager
def lent(model: Any) -> Iterator[Any]:
    """Within the block the model runs through the tap, in evaluation mode, without gradients.

    Afterwards, also after an error, every module has its own mode and configuration again, the
    attention implementation among it. Weights and their gradients are never touched.

    Raises:
        InputError: it is no causal language model of transformers, of no known family, or lies on
            several devices.
    """
    check_model(model)
    modes = {module: module.training for module in model.modules()}
    configurations = {m: m.config for m in model.modules() if "config" in vars(m)}
    try:
        # also where the caller has switched gradients or autograd off: scores need gradients inside
        with torch.inference_mode(False), torch.no_grad():
            yield attach(model).eval()
    finally:
        for module, training in modes.items():
            module.training = training
        for module, configuration in configurations.items():
            module.config = configuration


def check_model(model: Any) -> None:
    """Whether heads of this model can be read.

    Raises:
        InputError: see `lent`.
    """
    if not isinstance(model, PreTrainedModel):
        raise InputError(
            f"a {type(model).__name__} is no model of transformers",
            "load one with transformers.AutoModelForCausalLM.from_pretrained; of a PEFT model give "
            "model.get_base_model()",
        )
    check(model)
    devices = sorted({str(parameter.device) for parameter in model.parameters()})
    if len(devices) > 1:
        raise InputError(
            f"the model lies on {len(devices)} devices ({', '.join(devices)})",
            "load it onto one, without device_map='auto'",
        )


def check_tokenizer(tokenizer: Any, model: Any) -> None:
    """Whether a tokenizer says where in a text a token stands, and belongs to the model.

    Raises:
        InputError: it is a slow one, or it has more tokens than the model.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            f"{type(tokenizer).__name__} is a slow tokenizer: it does not tell where in a text a "
            "token stands",
            "load it with transformers.AutoTokenizer.from_pretrained(..., use_fast=True)",
        )
    known = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > known:
        raise InputError(
            f"the tokenizer has {len(tokenizer)} tokens, the model {known}",
            "load both from the same checkpoint",
        )
