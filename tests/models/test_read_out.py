"""Logits of chosen positions are those of the whole pass, in every family, capped or not."""

from __future__ import annotations

import torch

from mechdistill.models.batching import Batch
from mechdistill.models.read_out import logits_where


def test_logits_of_some_positions_are_those_of_the_whole_pass(eager, tapped, batch: Batch):
    whole = eager(batch.ids, attention_mask=batch.mask, use_cache=False).logits
    wanted = batch.mask.bool() & (torch.arange(batch.ids.shape[1]) % 3 == 0)
    row, position = wanted.nonzero(as_tuple=True)
    for at in (wanted, (row, position)):
        some = logits_where(tapped, batch.ids, at, attention_mask=batch.mask)
        torch.testing.assert_close(some, whole[wanted], rtol=1e-5, atol=1e-5)
