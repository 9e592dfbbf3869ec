from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.models.batching import left_pad

sequences = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=4)


@given(sequences)
def test_positions_find_every_token_again(tokens):
    batch = left_pad(tokens, pad_id=0)
    positions = batch.positions([list(range(len(row))) for row in tokens])
    for b, row in enumerate(tokens):
        used = positions[b][positions[b] >= 0]
        assert batch.ids[b, used].tolist() == row
        assert batch.mask[b].sum() == len(row)


def test_padding_stands_before_the_tokens():
    batch = left_pad([[5, 6, 7], [8]], pad_id=0)
    assert batch.ids.tolist() == [[5, 6, 7], [0, 0, 8]]
    assert batch.mask.tolist() == [[1, 1, 1], [0, 0, 1]]
    assert batch.offset.tolist() == [0, 2]


def test_unused_slots_are_minus_one():
    batch = left_pad([[5, 6, 7], [8]], pad_id=0)
    assert batch.positions([[2, 0], []]).tolist() == [[2, 0], [-1, -1]]
    assert batch.positions([[], [0]]).dtype == torch.long


def test_wrong_number_of_position_lists_is_refused():
    with pytest.raises(ValueError, match="1 lists"):
        left_pad([[5], [8]], pad_id=0).positions([[0]])
