"""Lookup tables that steps may change.

Guarantees: thread-safe; a find, an export and the size see all of an insert, a removal or an import
or nothing of it; after a fork the entries are copied at the first write of one of the two.

TF: tensorflow/core/kernels/lookup_table_op.cc
"""

from __future__ import annotations

import threading
from collections.abc import Hashable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.resources.lookup_table import LookupTable, Shape
from runtime.framework.shapes import shape_text


class MutableHashTable(LookupTable):
    """A table of scalars or of equal tensors that steps may change.

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
        self._lock = threading.RLock()  # guards _values and _is_shared
        self._values: dict[Hashable, object] = {}  # key → Python value, or one row
        self._is_shared = False  # with a fork: copy before a write

    @property
    def size(self) -> int:
        """Number of entries."""
        with self._lock:
            return len(self._values)

    def find(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """The value of each key, the default where there is none."""
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
        """All keys and values, in the order of insertion."""
        with self._lock:
            keys, values = list(self._values), list(self._values.values())
        array = np.empty((len(values), *self.value_shape), self.value_dtype.numpy)
        for row, value in enumerate(values):
            array[row] = value
        return self.key_tensor(keys), array

    def insert(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Add or replace entries."""
        entries = self._entries(keys, values)
        with self._lock:
            self._own()
            self._values.update(entries)

    def remove(self, keys: np.ndarray) -> None:
        """Drop the keys that are there."""
        gone = self.hashable_keys(keys)
        with self._lock:
            self._own()
            for key in gone:
                self._values.pop(key, None)

    def import_values(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Replace all entries."""
        entries = dict(self._entries(keys, values))
        with self._lock:
            self._values = entries
            self._is_shared = False

    def _entries(self, keys: np.ndarray, values: np.ndarray) -> list[tuple[Hashable, object]]:
        hashable = self.hashable_keys(keys)
        rows = values.reshape((len(hashable), *self.value_shape))
        listed = [row.copy() for row in rows] if self.value_shape else rows.tolist()
        return list(zip(hashable, listed, strict=True))

    def _own(self) -> None:
        """Make the dictionary this table's own before a write."""
        if self._is_shared:
            self._values = dict(self._values)
            self._is_shared = False

    def fork(self) -> MutableHashTable:
        """A table with the same entries, which are copied when one of the two writes."""
        copy = self._empty_copy()
        with self._lock:
            copy._values = self._values
            copy._is_shared = self._is_shared = True
        return copy

    def _empty_copy(self) -> MutableHashTable:
        return MutableHashTable(self.key_dtype, self.value_dtype, self.key_shape, self.value_shape)

    @property
    def bytes_held(self) -> int:
        """Bytes of the values, when no fork shares them."""
        per_entry = int(np.prod(self.value_shape, dtype=np.int64)) * self.value_dtype.numpy.itemsize
        return 0 if self._is_shared else len(self._values) * per_entry


class MutableDenseHashTable(MutableHashTable):
    """A mutable table with two keys that nobody may use.

    TF: MutableDenseHashTable (lookup_table_op.cc), which marks free buckets with them
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
        """One dictionary key an entry; InvalidArgumentError for a reserved one or another shape."""
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
        """An import takes matrices, one row an entry, as an export gives them."""
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
        """Replace all entries; reserved keys, which TensorFlow exports too, are left out."""
        reserved = (self._empty, self._deleted)
        keys = keys.reshape((-1, *self.key_shape))
        kept = [key not in reserved for key in super().hashable_keys(keys)]
        super().import_values(keys[kept], values.reshape((-1, *self.value_shape))[kept])

    def export_values(self) -> tuple[np.ndarray, np.ndarray]:
        """All keys and values, as matrices with one row an entry."""
        keys, values = super().export_values()
        return keys.reshape(len(keys), -1), values.reshape(len(values), -1)

    def _empty_copy(self) -> MutableDenseHashTable:
        return MutableDenseHashTable(
            self.key_dtype, self.value_dtype, self.value_shape, *self._reserved_keys
        )
