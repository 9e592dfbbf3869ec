"""A key-value cache with room for the whole run.

transformers' dynamic cache copies all keys and values at every step to append one; on large batches
that copy takes most of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer


class RoomyLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values of one layer in buffers of fixed room; `keys`, `values` are views of them."""

    def __init__(self, keys: Tensor, values: Tensor, batch: int, room: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        known = keys.shape[2]
        self._keys = keys.new_empty(batch, keys.shape[1], room, keys.shape[3])
        self._values = values.new_empty(batch, values.shape[1], room, values.shape[3])
        self._keys[:, :, :known] = keys
        self._values[:, :, :known] = values
        self.device = keys.device
        self.is_initialized = True
        self._length = known
        self._show()

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append; raises RuntimeError when the room is used up."""
        new = slice(self._length, self._length + key_states.shape[2])
        self._keys[:, :, new] = key_states
        self._values[:, :, new] = value_states
        self._length = new.stop
        return self._show()

    def _show(self) -> tuple[Tensor, Tensor]:
        self.keys = self._keys[:, :, : self._length]
        self.values = self._values[:, :, : self._length]
        return self.keys, self.values


def roomy_cache(layers: Sequence[tuple[Tensor, Tensor]], batch: int, room: int) -> Cache:
    """A cache that starts from known keys and values.

    Args:
        layers: keys and values of each layer, [1 or batch, KV, K, D]; one row is copied to all.
        batch: rows.
        room: the most keys that the run will have.
    """
    return Cache(layers=[RoomyLayer(keys, values, batch, room) for keys, values in layers])
