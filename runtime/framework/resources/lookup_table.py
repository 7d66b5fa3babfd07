"""Lookup tables, which are resources that map keys to values, and the class `HashTable`.

A `HashTable` is initialised once and then only read; forks share the contents.

Guarantees: thread-safe; `find` sees the table before or after an initialisation, never during one.

TF: tensorflow/core/framework/lookup_interface.h, kernels/lookup_table_op.cc
"""

from __future__ import annotations

import abc
import sys
import threading
from collections.abc import Hashable, Iterable

import numpy as np

from runtime.foundation.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from runtime.framework.dtypes import DataType
from runtime.framework.held_bytes import STRING_BYTES, value_bytes
from runtime.framework.resource_manager import Resource
from runtime.framework.shapes import shape_text

Shape = tuple[int, ...]
NUMBER_BYTES = 32  # of a Python number


class LookupTable(Resource, abc.ABC):
    """A map from keys of one dtype and shape to values of one dtype and shape."""

    type_name = "N10tensorflow6lookup15LookupInterfaceE"

    def __init__(
        self,
        key_dtype: DataType,
        value_dtype: DataType,
        key_shape: Shape = (),
        value_shape: Shape = (),
    ) -> None:
        self.key_dtype = key_dtype
        self.value_dtype = value_dtype
        self.key_shape = key_shape
        self.value_shape = value_shape

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number of entries."""

    @abc.abstractmethod
    def find(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """Return the value of each key, or `default` for missing keys.

        `keys` is `[*batch, *key_shape]`, `default` is `[*value_shape]` or has one value for each
        key, `[*batch, *value_shape]`; the result is `[*batch, *value_shape]`. Raises
        InvalidArgumentError if a shape is wrong.
        """

    @abc.abstractmethod
    def export_values(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all keys `[n, *key_shape]` and all values `[n, *value_shape]`."""

    @abc.abstractmethod
    def insert(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Add the entries (`keys[i]`, `values[i]`); replace the values of existing keys."""

    @abc.abstractmethod
    def remove(self, keys: np.ndarray) -> None:
        """Remove the entries of `keys`; keys that are not in the table are ignored."""

    @abc.abstractmethod
    def import_values(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Replace all entries by the entries (`keys[i]`, `values[i]`)."""

    def batch_shape(self, keys: np.ndarray) -> Shape:
        """Return the shape of `keys` without the trailing dimensions `key_shape`.

        Raises InvalidArgumentError if the shape does not end with `key_shape`.
        """
        split = keys.ndim - len(self.key_shape)
        if split < 0 or keys.shape[split:] != self.key_shape:
            raise InvalidArgumentError(
                f"Input key shape {shape_text(keys.shape)} must end with the table's key shape "
                f"{shape_text(self.key_shape)}"
            )
        return keys.shape[:split]

    def check_find(self, keys: np.ndarray, default: np.ndarray) -> None:
        """Raise InvalidArgumentError unless `find` supports these shapes."""
        full = self.batch_shape(keys) + self.value_shape
        if default.shape not in (self.value_shape, full):
            raise InvalidArgumentError(
                f"Expected shape {shape_text(self.value_shape)} or {shape_text(full)} "
                f"for default value, got {shape_text(default.shape)}"
            )

    def check_insert(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Raise InvalidArgumentError unless `values` has a value of `value_shape` for each key."""
        expected = self.batch_shape(keys) + self.value_shape
        if values.shape != expected:
            raise InvalidArgumentError(
                f"Expected shape {shape_text(expected)} for value, got {shape_text(values.shape)}"
            )

    def check_import(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Raise InvalidArgumentError unless `import_values` supports these shapes."""
        self.check_insert(keys, values)

    def hashable_keys(self, keys: np.ndarray) -> list[Hashable]:
        """Return a hashable object, used as a key of a Python dict, for each key in a tensor."""
        if not self.key_shape:
            flat: list[Hashable] = keys.ravel().tolist()
            return flat
        rows = keys.reshape(-1, int(np.prod(self.key_shape, dtype=np.int64))).tolist()
        return [tuple(row) for row in rows]

    def key_tensor(self, keys: Iterable[Hashable]) -> np.ndarray:
        """Return the tensor `[n, *key_shape]` of n keys in the form of `hashable_keys`."""
        listed = list(keys)
        array = np.empty((len(listed), *self.key_shape), self.key_dtype.numpy)
        if listed:
            array.reshape(len(listed), -1)[:] = [
                key if isinstance(key, tuple) else (key,) for key in listed
            ]
        return array


class _Contents:
    """The contents of an initialised HashTable; immutable."""

    __slots__ = ("bytes", "row_of", "values")

    def __init__(self, row_of: dict[Hashable, int], values: np.ndarray) -> None:
        self.row_of = row_of
        self.values = values
        self.bytes = _keys_bytes(row_of) + value_bytes(values)

    @classmethod
    def of_rows(cls, row_of: dict[Hashable, int], values: np.ndarray) -> _Contents:
        """Return contents that have only the rows of `values` to which `row_of` maps a key."""
        kept = np.fromiter(row_of.values(), np.int64, len(row_of))
        return cls({key: row for row, key in enumerate(row_of)}, values[kept])


def _keys_bytes(row_of: dict[Hashable, int]) -> int:
    """Return the bytes of keys, which are numbers or strings, and of their table of rows."""
    size = sys.getsizeof(row_of) + 2 * NUMBER_BYTES * len(row_of)
    if isinstance(next(iter(row_of), None), bytes):
        size += sum(map(len, row_of)) + (STRING_BYTES - NUMBER_BYTES) * len(row_of)  # type: ignore[arg-type] # all keys are of one type
    return size


class HashTable(LookupTable):
    """A table that is initialised once.

    TF: InitializableLookupTable (initializable_lookup_table.h)
    """

    def __init__(self, key_dtype: DataType, value_dtype: DataType) -> None:
        super().__init__(key_dtype, value_dtype)
        # Guards writes of the fields below; a read loads `_contents` once, without the lock.
        self._lock = threading.Lock()
        self._contents: _Contents | None = None
        # The entries that a failed initialisation had added before the entry at which it failed.
        self._partial_contents: _Contents | None = None
        self._is_shared = False  # whether a fork shares the contents

    @property
    def is_initialized(self) -> bool:
        """Whether the table has been initialised."""
        return self._contents is not None

    @property
    def size(self) -> int:
        """The number of entries, or 0 before the initialisation."""
        contents = self._contents
        return 0 if contents is None else len(contents.row_of)

    def find(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """Return the value of each key, or `default` for missing keys, as in the base class.

        Raises FailedPreconditionError if the table is not initialised.
        """
        self.check_find(keys, default)
        contents = self._contents
        if contents is None:
            raise FailedPreconditionError("Table not initialized.")
        look_up = contents.row_of.get
        flat = keys.ravel().tolist()
        rows = np.fromiter((look_up(key, -1) for key in flat), np.int64, len(flat))
        found = np.empty(len(flat), self.value_dtype.numpy)
        if flat:
            found[:] = default.ravel()[0]  # only the first default is used, even if there are more
        hits = rows >= 0
        found[hits] = contents.values[rows[hits]]
        return found.reshape(keys.shape)

    def export_values(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all keys and values, as in the base class.

        Raises AbortedError if the table is not initialised.
        """
        contents = self._contents
        if contents is None:
            raise AbortedError("HashTable is not initialized.")
        return self.key_tensor(contents.row_of), contents.values

    def initialize(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Initialise the table with n keys and n values; do nothing if it already has n entries.

        Raises FailedPreconditionError if a key has two different values, or if the table already
        has another number of entries; InvalidArgumentError if there are no keys.
        """
        keys_in_order = keys.ravel().tolist()
        if not keys_in_order:
            raise InvalidArgumentError("keys and values cannot be empty tensors.")
        with self._lock:
            if not self._is_refilled(len(keys_in_order)):
                self._fill(keys_in_order, values)

    def _fill(self, keys_in_order: list[Hashable], values: np.ndarray) -> None:
        """Set the contents; raise FailedPreconditionError if a key has two different values.

        The caller must hold the lock.
        """
        partial = self._partial_contents
        if partial is not None:  # as in TensorFlow, a second attempt keeps these entries
            keys_in_order = [*partial.row_of, *keys_in_order]
            values = np.concatenate([partial.values, values])
        row_of: dict[Hashable, int] = {}
        for row, key in enumerate(keys_in_order):
            first = row_of.setdefault(key, row)
            if first != row and values[first] != values[row]:
                self._partial_contents = _Contents.of_rows(row_of, values)
                raise FailedPreconditionError(
                    "HashTable has different value for same key. "
                    f"Key {_show(key)} has {_show(values[first])} "
                    f"and trying to add value {_show(values[row])}"
                )
        self._contents, self._partial_contents = _Contents.of_rows(row_of, values), None

    def _is_refilled(self, count: int) -> bool:
        """Return whether the table is initialised.

        Raises FailedPreconditionError if it was initialised with another number of entries.
        """
        contents = self._contents
        if contents is not None and len(contents.row_of) != count:
            raise FailedPreconditionError("Table was already initialized with different data.")
        return contents is not None

    def import_values(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Initialise the table, as `initialize` does."""
        self.initialize(keys, values.ravel())

    def insert(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Raise UnimplementedError, because this kind of table does not support inserts."""
        raise UnimplementedError("Insert not supported by InitializableLookupTable implementations")

    def remove(self, keys: np.ndarray) -> None:
        """Raise UnimplementedError, because this kind of table does not support removals."""
        raise UnimplementedError("Remove not supported by InitializableLookupTable implementations")

    def fork(self) -> HashTable:
        """Return a table with the same contents; if initialised, both tables share them."""
        copy = HashTable(self.key_dtype, self.value_dtype)
        with self._lock:
            copy._contents, copy._partial_contents = self._contents, self._partial_contents
            copy._is_shared = self._is_shared = self._contents is not None
        return copy

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the entries, or 0 if a fork shares them."""
        entries = [each.bytes for each in (self._contents, self._partial_contents) if each]
        return 0 if self._is_shared else sum(entries), ()


def _show(value: object) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
