"""Lookup tables whose entries steps can change.

Guarantees: thread-safe; `find`, `export_values` and `size` see the table before or after an insert,
a removal or an import, never a part of such a change; after a fork, the first of the two tables
that is written copies the entries.

TF: tensorflow/core/kernels/lookup_table_op.cc
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.growth_limit import NO_LIMIT, GrowthLimit
from runtime.framework.held_bytes import ENTRY_BYTES, OBJECT_BYTES, STRING_BYTES
from runtime.framework.resources.lookup_table import NUMBER_BYTES, LookupTable, Shape
from runtime.framework.shapes import shape_text

_POINTER_BYTES = 8


class MutableHashTable(LookupTable):
    """A mutable table whose keys and values are scalars or tensors of fixed shapes.

    TF: MutableHashTableOfScalars, MutableHashTableOfTensors (lookup_table_op.cc)
    """

    def __init__(
        self,
        key_dtype: DataType,
        value_dtype: DataType,
        key_shape: Shape = (),
        value_shape: Shape = (),
    ) -> None:
        super().__init__(key_dtype, value_dtype, key_shape, value_shape)
        self._lock = threading.RLock()  # guards `_values` and `_is_shared`
        self._values: dict[
            Hashable, object
        ] = {}  # key → a Python scalar, or an array of shape `value_shape`
        self._is_shared = False  # whether a fork shares `_values`; a write must then copy them
        self._bytes_of_entry = self._entry_bytes()  # without the characters of strings
        self._arriving = 0  # number of entries that an insert is about to add
        self._has_texts = DataType.STRING in (key_dtype, value_dtype)
        self._texts = 0  # the number of characters of all strings in `_values`
        self._limit = NO_LIMIT

    def _entry_bytes(self) -> int:
        """Return the bytes of an entry, without the characters of strings."""
        key = STRING_BYTES if self.key_dtype == DataType.STRING else NUMBER_BYTES
        if self.key_shape:  # a tuple
            key = OBJECT_BYTES + math.prod(self.key_shape) * (_POINTER_BYTES + key)
        value = STRING_BYTES if self.value_dtype == DataType.STRING else NUMBER_BYTES
        if self.value_shape:  # an array
            each = self.value_dtype.numpy.itemsize
            each += STRING_BYTES if self.value_dtype == DataType.STRING else 0
            value = OBJECT_BYTES + math.prod(self.value_shape) * each
        return ENTRY_BYTES + key + value

    @property
    def size(self) -> int:
        """The number of entries."""
        with self._lock:
            return len(self._values)

    def find(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """Return the value of each key, or `default` for missing keys, as in the base class."""
        self.check_find(keys, default)
        wanted = self.hashable_keys(keys)
        found = np.empty((len(wanted), *self.value_shape), self.value_dtype.numpy)
        batch = self.batch_shape(keys)
        if default.shape == self.value_shape:
            found[:] = default
        else:
            found[:] = default.reshape(found.shape)
        with self._lock:
            look_up = self._values.get
            for row, key in enumerate(wanted):
                value = look_up(key)
                if value is not None:
                    found[row] = value
        return found.reshape(batch + self.value_shape)

    def export_values(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all keys and values, as in the base class, in the order of insertion."""
        with self._lock:
            keys, values = list(self._values), list(self._values.values())
        array = np.empty((len(values), *self.value_shape), self.value_dtype.numpy)
        for row, value in enumerate(values):
            array[row] = value
        return self.key_tensor(keys), array

    def insert(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Add the entries (`keys[i]`, `values[i]`); replace the values of existing keys.

        Raises ResourceExhaustedError if the resources of the session would hold too many bytes.
        """
        entries = self._entries(keys, values)
        with self._lock:
            self._unshare()
            known, before = self._values, self._texts
            if self._has_texts:
                newest = dict(entries)
                replaced = {key: known[key] for key in newest if key in known}
                self._texts += _characters(newest) - _characters(replaced)
            if self._limit.max_bytes != sys.maxsize:
                self._check_growth([key for key, _ in entries if key not in known], before)
            known.update(entries)

    def _check_growth(self, added: list[Hashable], texts: int) -> None:
        """Report new keys to the limit; if it refuses them, set back the number of characters."""
        self._arriving = len(added)
        try:
            self._limit.grow(len(added) * self._bytes_of_entry + max(0, self._texts - texts))
        except BaseException:
            self._texts = texts
            raise
        finally:
            self._arriving = 0

    def remove(self, keys: np.ndarray) -> None:
        """Remove the entries of `keys`; keys that are not in the table are ignored."""
        gone = self.hashable_keys(keys)
        with self._lock:
            self._unshare()
            known = self._values
            dropped = {key: known.pop(key) for key in gone if key in known}
            if self._has_texts:
                self._texts -= _characters(dropped)

    def import_values(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Replace all entries by the entries (`keys[i]`, `values[i]`)."""
        entries = dict(self._entries(keys, values))
        with self._lock:
            self._values = entries
            self._texts = _characters(entries) if self._has_texts else 0
            self._is_shared = False

    def _entries(self, keys: np.ndarray, values: np.ndarray) -> list[tuple[Hashable, object]]:
        hashable = self.hashable_keys(keys)
        rows = values.reshape((len(hashable), *self.value_shape))
        listed = [row.copy() for row in rows] if self.value_shape else rows.tolist()
        return list(zip(hashable, listed, strict=True))

    def _unshare(self) -> None:
        """Copy the entries if a fork shares them; the caller must hold the lock until it writes."""
        if self._is_shared:
            self._values = dict(self._values)
            self._is_shared = False

    def fork(self) -> MutableHashTable:
        """Return a table that shares the entries until one of the two tables is written."""
        copy = self._empty_copy()
        with self._lock:
            copy._values, copy._texts = self._values, self._texts
            copy._is_shared = self._is_shared = True
        return copy

    def _empty_copy(self) -> MutableHashTable:
        return MutableHashTable(self.key_dtype, self.value_dtype, self.key_shape, self.value_shape)

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the entries, or 0 if a fork shares them."""
        entries = len(self._values) + self._arriving
        return 0 if self._is_shared else entries * self._bytes_of_entry + self._texts, ()

    def limit_growth(self, limit: GrowthLimit) -> None:
        """Report later inserts to `limit`."""
        self._limit = limit


def _characters(entries: Mapping[Hashable, object]) -> int:
    """Return the number of characters of the strings in entries."""
    return sum(sum(map(_length, part)) for part in (entries.keys(), entries.values()))


def _length(item: object) -> int:
    if isinstance(item, bytes):
        return len(item)
    return sum(map(_length, item)) if isinstance(item, tuple | np.ndarray) else 0


class MutableDenseHashTable(MutableHashTable):
    """A mutable table with two reserved keys, which can't be used as keys of entries.

    TF: MutableDenseHashTable (lookup_table_op.cc), which marks free buckets with the reserved keys
    """

    def __init__(
        self,
        key_dtype: DataType,
        value_dtype: DataType,
        value_shape: Shape,
        empty_key: np.ndarray,
        deleted_key: np.ndarray,
    ) -> None:
        super().__init__(key_dtype, value_dtype, empty_key.shape, value_shape)
        if deleted_key.shape != empty_key.shape:
            raise InvalidArgumentError(
                "Empty and deleted keys must have same shape, got shapes: "
                f"{shape_text(empty_key.shape)} and {shape_text(deleted_key.shape)}"
            )
        self._reserved_keys = (empty_key, deleted_key)
        self._empty, self._deleted = (
            super(MutableDenseHashTable, self).hashable_keys(key[np.newaxis])[0]
            for key in self._reserved_keys
        )
        if self._empty == self._deleted:
            raise InvalidArgumentError("Empty and deleted keys cannot be equal")

    def hashable_keys(self, keys: np.ndarray) -> list[Hashable]:
        """Return the dictionary key for each key of a tensor, as in the base class.

        Raises InvalidArgumentError if a key is reserved or `keys` has a wrong shape.
        """
        rows = keys.shape[:1]
        if keys.size != int(np.prod((*rows, *self.key_shape), dtype=np.int64)):
            expected, got = shape_text((*rows, *self.key_shape)), shape_text(keys.shape)
            raise InvalidArgumentError(f"Expected key shape {expected} got {got}")
        hashable = super().hashable_keys(keys)
        for key, name in ((self._empty, "empty_key"), (self._deleted, "deleted_key")):
            if key in hashable:
                raise InvalidArgumentError(f"Using the {name} as a table key is not allowed")
        return hashable

    def check_import(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Raise InvalidArgumentError unless `keys` and `values` are matrices of equal height.

        Each row must be a flattened key or value, as in the results of `export_values`.
        """
        rows = len(keys) if keys.ndim else 0
        widths = [
            int(np.prod(shape, dtype=np.int64)) for shape in (self.key_shape, self.value_shape)
        ]
        for name, tensor, width in zip(("key", "value"), (keys, values), widths, strict=True):
            if tensor.shape != (rows, width):
                raise InvalidArgumentError(
                    f"Expected shape {shape_text((rows, width))} for {name}, "
                    f"got {shape_text(tensor.shape)}"
                )

    def import_values(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Replace all entries by the entries (`keys[i]`, `values[i]`).

        Reserved keys, which TensorFlow's exports contain, are ignored.
        """
        reserved = (self._empty, self._deleted)
        keys = keys.reshape((-1, *self.key_shape))
        kept = [key not in reserved for key in super().hashable_keys(keys)]
        super().import_values(keys[kept], values.reshape((-1, *self.value_shape))[kept])

    def export_values(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all keys and all values as two matrices, with one row for each entry."""
        keys, values = super().export_values()
        return keys.reshape(len(keys), -1), values.reshape(len(values), -1)

    def _empty_copy(self) -> MutableDenseHashTable:
        return MutableDenseHashTable(
            self.key_dtype, self.value_dtype, self.value_shape, *self._reserved_keys
        )
