"""Lookup tables: what maps keys to values in a session's resources.

An immutable `HashTable` is filled once and then only read; forks share its contents.

Guarantees: thread-safe; a find sees all of an initialisation or nothing of it.

TF: tensorflow/core/framework/lookup_interface.h, kernels/lookup_table_op.cc
"""

from __future__ import annotations

import abc
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
from runtime.framework.resource_manager import Resource
from runtime.framework.shapes import shape_text

Shape = tuple[int, ...]


class LookupTable(Resource, abc.ABC):
    """Keys of one type and shape to values of one type and shape."""

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
        """Number of entries."""

    @abc.abstractmethod
    def find(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """The value of each key, `default` (one value, or one a key) where there is none."""

    @abc.abstractmethod
    def export_values(self) -> tuple[np.ndarray, np.ndarray]:
        """All keys and values."""

    @abc.abstractmethod
    def insert(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Add or replace entries."""

    @abc.abstractmethod
    def remove(self, keys: np.ndarray) -> None:
        """Drop the keys that are there."""

    @abc.abstractmethod
    def import_values(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Replace all entries."""

    def batch_shape(self, keys: np.ndarray) -> Shape:
        """The shape of a tensor of keys, without the dimensions of a key."""
        split = keys.ndim - len(self.key_shape)
        if split < 0 or keys.shape[split:] != self.key_shape:
            raise InvalidArgumentError(
                f"Input key shape {shape_text(keys.shape)} must end with the table's key shape "
                f"{shape_text(self.key_shape)}"
            )
        return keys.shape[:split]

    def check_find(self, keys: np.ndarray, default: np.ndarray) -> None:
        """Raise InvalidArgumentError unless the shapes suit a find."""
        full = self.batch_shape(keys) + self.value_shape
        if default.shape not in (self.value_shape, full):
            raise InvalidArgumentError(
                f"Expected shape {shape_text(self.value_shape)} or {shape_text(full)} "
                f"for default value, got {shape_text(default.shape)}"
            )

    def check_insert(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Raise InvalidArgumentError unless there is a value of the right shape for each key."""
        expected = self.batch_shape(keys) + self.value_shape
        if values.shape != expected:
            raise InvalidArgumentError(
                f"Expected shape {shape_text(expected)} for value, got {shape_text(values.shape)}"
            )

    def check_import(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Raise InvalidArgumentError unless an import may take these."""
        self.check_insert(keys, values)

    def hashable_keys(self, keys: np.ndarray) -> list[Hashable]:
        """One dictionary key an entry."""
        if not self.key_shape:
            flat: list[Hashable] = keys.ravel().tolist()
            return flat
        rows = keys.reshape(-1, int(np.prod(self.key_shape, dtype=np.int64))).tolist()
        return [tuple(row) for row in rows]

    def key_tensor(self, keys: Iterable[Hashable]) -> np.ndarray:
        """The tensor of such dictionary keys, [n, *key shape]."""
        listed = list(keys)
        array = np.empty((len(listed), *self.key_shape), self.key_dtype.numpy)
        if listed:
            array.reshape(len(listed), -1)[:] = [
                key if isinstance(key, tuple) else (key,) for key in listed
            ]
        return array


class _Contents:
    """What an initialised HashTable holds; never changes."""

    __slots__ = ("row_of", "values")

    def __init__(self, row_of: dict[Hashable, int], values: np.ndarray) -> None:
        self.row_of = row_of
        self.values = values

    @classmethod
    def of_rows(cls, row_of: dict[Hashable, int], values: np.ndarray) -> _Contents:
        """Keys with some of the rows of `values`."""
        kept = np.fromiter(row_of.values(), np.int64, len(row_of))
        return cls({key: row for row, key in enumerate(row_of)}, values[kept])


class HashTable(LookupTable):
    """A table that is filled once.

    TF: InitializableLookupTable (initializable_lookup_table.h)
    """

    def __init__(self, key_dtype: DataType, value_dtype: DataType) -> None:
        super().__init__(key_dtype, value_dtype)
        self._lock = threading.Lock()  # guards writes of what follows; reads load _contents once
        self._contents: _Contents | None = None
        self._left: _Contents | None = None  # what an initialisation put in before it failed
        self._is_shared = False

    @property
    def is_initialized(self) -> bool:
        """Whether it was filled."""
        return self._contents is not None

    @property
    def size(self) -> int:
        """Number of entries; 0 before it is filled."""
        contents = self._contents
        return 0 if contents is None else len(contents.row_of)

    def find(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """The value of each key; FailedPreconditionError before it is filled."""
        self.check_find(keys, default)
        contents = self._contents
        if contents is None:
            raise FailedPreconditionError("Table not initialized.")
        look_up = contents.row_of.get
        flat = keys.ravel().tolist()
        rows = np.fromiter((look_up(key, -1) for key in flat), np.int64, len(flat))
        found = np.empty(len(flat), self.value_dtype.numpy)
        if flat:
            found[:] = default.ravel()[0]  # of a default for each key only the first counts
        hits = rows >= 0
        found[hits] = contents.values[rows[hits]]
        return found.reshape(keys.shape)

    def export_values(self) -> tuple[np.ndarray, np.ndarray]:
        """All keys and values; AbortedError before it is filled."""
        contents = self._contents
        if contents is None:
            raise AbortedError("HashTable is not initialized.")
        return self.key_tensor(contents.row_of), contents.values

    def initialize(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Fill the table with two vectors; a second time is fine with as many entries.

        Raises FailedPreconditionError for a key with two values or another number of entries than
        before.
        """
        keys_in_order = keys.ravel().tolist()
        if not keys_in_order:
            raise InvalidArgumentError("keys and values cannot be empty tensors.")
        with self._lock:
            if not self._is_refilled(len(keys_in_order)):
                self._fill(keys_in_order, values)

    def _fill(self, keys_in_order: list[Hashable], values: np.ndarray) -> None:
        """The lock is held."""
        if (left := self._left) is not None:  # as in TensorFlow, it stays for the next one
            keys_in_order = [*left.row_of, *keys_in_order]
            values = np.concatenate([left.values, values])
        row_of: dict[Hashable, int] = {}
        for row, key in enumerate(keys_in_order):
            first = row_of.setdefault(key, row)
            if first != row and values[first] != values[row]:
                self._left = _Contents.of_rows(row_of, values)
                raise FailedPreconditionError(
                    "HashTable has different value for same key. "
                    f"Key {_show(key)} has {_show(values[first])} "
                    f"and trying to add value {_show(values[row])}"
                )
        self._contents, self._left = _Contents.of_rows(row_of, values), None

    def _is_refilled(self, count: int) -> bool:
        """Whether the table is filled already, with as many entries as now."""
        contents = self._contents
        if contents is not None and len(contents.row_of) != count:
            raise FailedPreconditionError("Table was already initialized with different data.")
        return contents is not None

    def import_values(self, keys: np.ndarray, values: np.ndarray) -> None:
        """The same as `initialize`."""
        self.initialize(keys, values.ravel())

    def insert(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Not supported."""
        raise UnimplementedError("Insert not supported by InitializableLookupTable implementations")

    def remove(self, keys: np.ndarray) -> None:
        """Not supported."""
        raise UnimplementedError("Remove not supported by InitializableLookupTable implementations")

    def fork(self) -> HashTable:
        """A table with the same contents; when there are none yet, each is filled by itself."""
        copy = HashTable(self.key_dtype, self.value_dtype)
        with self._lock:
            copy._contents, copy._left = self._contents, self._left
            copy._is_shared = self._is_shared = self._contents is not None
        return copy

    @property
    def bytes_held(self) -> int:
        """Bytes of the values, when no fork shares them."""
        contents = self._contents
        return 0 if contents is None or self._is_shared else contents.values.nbytes


def _show(value: object) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
