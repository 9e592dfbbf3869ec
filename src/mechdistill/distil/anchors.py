"""c_anchor(x) of each training example in one model's residual space."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.heads.anchors import unembed_anchors
from mechdistill.heads.places import anchor_ids
from mechdistill.models.families import family_of


@torch.no_grad()
def anchors_by_example(
    model: Any, examples: Iterable[Example], space: LabelSpace, tokenizer: Any
) -> dict[str, Tensor]:
    """Unembedding anchors [d], detached: the direction that raises the gold regions' names.

    The anchors come from gold labels, as printed: information that plain distillation lacks.
    """
    unembedding: Tensor = family_of(model).unembedding(model).weight  # type: ignore[assignment]
    gain, _ = family_of(model).final_norm(model)
    known = list(examples)
    if not known:
        return {}
    anchors = [anchor_ids(example, space, tokenizer) for example in known]
    found = unembed_anchors(unembedding, gain, anchors)
    return {example.example: anchor for example, anchor in zip(known, found, strict=True)}
