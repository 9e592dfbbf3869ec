"""The three residual anchors from their definitions."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cosine_similarity

from mechdistill.heads.anchors import (
    context_anchor,
    embed_anchors,
    unembed_anchors,
)

VOCABULARY, WIDTH = 11, 6
ANCHORS = [[3], [5, 7, 8]]


@pytest.fixture
def matrix():
    return torch.randn(VOCABULARY, WIDTH, generator=torch.Generator().manual_seed(0))


def test_embed_anchor_weighs_anchors_alike_whatever_their_length(matrix):
    expected = (matrix[3] + (matrix[5] + matrix[7] + matrix[8]) / 3) / 2
    torch.testing.assert_close(embed_anchors(matrix, [ANCHORS])[0], expected)


def test_unembed_anchor_is_the_gradient_of_the_centred_anchor_logit(matrix):
    gain = torch.rand(WIDTH) + 0.5
    hidden = torch.randn(WIDTH, requires_grad=True)  # already divided by its scale
    logits = matrix @ (hidden * gain)
    ((logits[3] + logits[[5, 7, 8]].mean()) / 2 - logits.mean()).backward()
    torch.testing.assert_close(unembed_anchors(matrix, gain, [ANCHORS])[0], hidden.grad)


def test_unembed_anchor_ignores_what_all_rows_share(matrix):
    gain = torch.ones(WIDTH)
    shared = 100 * torch.randn(WIDTH)
    plain, shifted = (unembed_anchors(m, gain, [ANCHORS])[0] for m in (matrix, matrix + shared))
    assert cosine_similarity(plain, shifted, dim=0) > 0.999


def test_each_example_has_its_own_anchor(matrix):
    gain = torch.rand(WIDTH) + 0.5
    both = unembed_anchors(matrix, gain, [ANCHORS, [[2]]])
    for anchors, found in zip((ANCHORS, [[2]]), both, strict=True):
        torch.testing.assert_close(found, unembed_anchors(matrix, gain, [anchors])[0])


def test_context_anchor_is_the_mean_residual_at_mentions():
    residual = torch.randn(2, 4, WIDTH)
    mentions = torch.tensor([[False, True, False, True], [False] * 4])
    anchor = context_anchor(residual, mentions)
    torch.testing.assert_close(anchor[0], (residual[0, 1] + residual[0, 3]) / 2)
    assert (anchor[1] == 0).all()


def test_example_without_anchor_is_refused(matrix):
    with pytest.raises(ValueError, match="at least one anchor"):
        embed_anchors(matrix, [ANCHORS, []])
