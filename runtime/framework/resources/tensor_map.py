"""Tensor maps: immutable maps whose keys and values are tensors.

An operation that changes a map returns a new map, which shares keys and values with the old map.

TF: tensorflow/core/kernels/tensor_map.h (TensorMap), framework/tensor_key.h
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

import numpy as np

from runtime.framework.tensor_value import TensorValue

_Identity = tuple[str, tuple[int, ...], Hashable]
_Entries = dict[_Identity, tuple[TensorValue, TensorValue]]


def _identity(key: TensorValue) -> _Identity:
    """Return the dtype, shape and bits of a key, by which keys are compared.

    NaN is therefore equal to itself, and −0 differs from 0.
    """
    array = np.asarray(key)
    bits = tuple(array.ravel().tolist()) if array.dtype.hasobject else array.tobytes()
    return array.dtype.name, array.shape, bits


class TensorMap:
    """A map from tensors to tensors, of any element types."""

    __slots__ = ("_entries",)

    def __init__(
        self, entries: Mapping[_Identity, tuple[TensorValue, TensorValue]] | None = None
    ) -> None:
        self._entries: _Entries = dict(entries or {})

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: TensorValue) -> bool:
        return _identity(key) in self._entries

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the keys, their identities and the values."""
        return 0, (self._entries,)

    def find(self, key: TensorValue) -> TensorValue:
        """Return the value of `key`, or None if the map does not have the key."""
        return self._entries.get(_identity(key), (None, None))[1]

    def items(self) -> Iterator[tuple[TensorValue, TensorValue]]:
        """Iterate over (key, value) pairs in the order in which the keys were inserted."""
        return iter(self._entries.values())

    def inserted(self, key: TensorValue, value: TensorValue) -> TensorMap:
        """Return a map in which `key` has the value `value`; add or replace the entry."""
        return TensorMap({**self._entries, _identity(key): (key, value)})

    def erased(self, key: TensorValue) -> TensorMap:
        """Return a map without `key`."""
        dropped = _identity(key)
        return TensorMap({each: pair for each, pair in self._entries.items() if each != dropped})
