"""Tensor maps: immutable maps whose keys and values are tensors.

Every operation returns a new map, which shares keys and values with the old one.

TF: tensorflow/core/kernels/tensor_map.h (TensorMap), framework/tensor_key.h
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

_Identity = tuple[str, tuple[int, ...], Any]
_Entries = dict[_Identity, tuple[Any, Any]]


def _identity(key: object) -> _Identity:
    """The identity of a key: dtype, shape and bits; so NaN equals itself and −0 differs from 0."""
    array = np.asarray(key)
    bits = tuple(array.ravel().tolist()) if array.dtype.hasobject else array.tobytes()
    return array.dtype.name, array.shape, bits


class TensorMap:
    """A map from tensors to tensors, of any element types."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[_Identity, tuple[Any, Any]] | None = None) -> None:
        self._entries: _Entries = dict(entries or {})

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return _identity(key) in self._entries

    def find(self, key: object) -> Any:
        """The value at `key`, or None."""
        return self._entries.get(_identity(key), (None, None))[1]

    def items(self) -> Iterator[tuple[Any, Any]]:
        """(key, value) pairs in the order in which the keys were inserted."""
        return iter(self._entries.values())

    def inserted(self, key: object, value: Any) -> TensorMap:
        """A map with `value` at `key`, which is added or replaced."""
        return TensorMap({**self._entries, _identity(key): (key, value)})

    def erased(self, key: object) -> TensorMap:
        """A map without `key`."""
        dropped = _identity(key)
        return TensorMap({each: pair for each, pair in self._entries.items() if each != dropped})
