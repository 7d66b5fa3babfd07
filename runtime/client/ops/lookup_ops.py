"""`tf.compat.v1.lookup`: lookup tables and their initializers.

TF: tensorflow/python/ops/lookup_ops.py
"""

from __future__ import annotations

from typing import Protocol

from runtime.client.framework.argument_types import TensorLike
from runtime.client.framework.element_types import DTypeLike, as_dtype
from runtime.client.framework.graph_elements import GraphKeys
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.ops import op_function
from runtime.client.ops.construction import add_to_collection, convert_to_tensor
from runtime.client.ops.sparse_values import DenseOrSparse, SparseTensor
from runtime.framework.dtypes import DataType


class KeyValueTensorInitializer:
    """Fills a table with `keys` and `values`, two tensors `[n]`."""

    def __init__(
        self,
        keys: TensorLike,
        values: TensorLike,
        key_dtype: DTypeLike | None = None,
        value_dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> None:
        """Take tensors or values, which are converted to `key_dtype` and `value_dtype` if given."""
        key_type = None if key_dtype is None else as_dtype(key_dtype)
        value_type = None if value_dtype is None else as_dtype(value_dtype)
        self._keys = convert_to_tensor(keys, key_type, "keys")
        self._values = convert_to_tensor(values, value_type, "values")
        self._name = name or "key_value_init"

    @property
    def key_dtype(self) -> DataType:
        """The type of the keys."""
        return self._keys.dtype

    @property
    def value_dtype(self) -> DataType:
        """The type of the values."""
        return self._values.dtype

    @property
    def shared_name(self) -> str:
        """Always empty, because tables with this initializer are not shared by name."""
        return ""

    def initialize(self, table: LookupTable) -> Operation:
        """Add an operation that fills `table`."""
        handle = table.resource_handle
        operation: Operation = op_function("LookupTableImportV2")(
            handle, self._keys, self._values, name=self._name
        )
        return operation


class TextFileIndex:
    """The values of `key_index` and `value_index` that are not column indices."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer:
    """Fills a table from the lines of a text file, which is read on the runtime's own machine."""

    def __init__(
        self,
        filename: TensorLike,
        key_dtype: DTypeLike,
        key_index: int,
        value_dtype: DTypeLike,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        """Take the file, and what to use as key and value of each line.

        `key_index` and `value_index` are the index of a column, or a value of TextFileIndex. At
        most `vocab_size` lines are read (None: all).
        """
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        self._filename = convert_to_tensor(filename, DataType.STRING, "asset_filepath")
        add_to_collection(GraphKeys.ASSET_FILEPATHS, self._filename)
        self._attributes = {
            "key_index": key_index,
            "value_index": value_index,
            "vocab_size": -1 if vocab_size is None else vocab_size,
            "delimiter": delimiter,
            "offset": value_index_offset,
        }
        self._name = name or "text_file_init"
        size = self._attributes["vocab_size"]
        self.shared_name = f"hash_table_{filename}_{size}_{key_index}_{value_index}"

    def initialize(self, table: LookupTable) -> Operation:
        """Add an operation that fills `table`."""
        operation: Operation = op_function("InitializeTableFromTextFileV2")(
            table.resource_handle, self._filename, **self._attributes, name=self._name
        )
        return operation


class LookupTable:
    """The methods that static and mutable tables share."""

    def __init__(self, handle: Tensor, default_value: Tensor, key_dtype: DataType) -> None:
        self.resource_handle = handle
        self.default_value = default_value
        self.key_dtype = key_dtype
        self.value_dtype = default_value.dtype

    @property
    def name(self) -> str:
        """The name of the operation that holds the table."""
        name: str = self.resource_handle.op.name
        return name

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of keys, as a scalar tensor."""
        size: Tensor = op_function("LookupTableSizeV2")(self.resource_handle, name=name)
        return size

    def lookup(self, keys: TensorLike, name: str | None = None) -> DenseOrSparse:
        """Return the values of `keys`, with `default_value` for unknown keys.

        If `keys` are sparse, the values are sparse too. Raises TypeError if `keys` have another
        type than the keys of the table.
        """
        if isinstance(keys, SparseTensor):
            found = self.lookup(keys.values, name)
            return SparseTensor(keys.indices, found, keys.dense_shape)
        key_tensor = convert_to_tensor(keys, name="keys")
        if key_tensor.dtype is not self.key_dtype:
            raise TypeError(
                f"Dtype of argument `keys` must be {self.key_dtype}, received: {key_tensor.dtype}"
            )
        find = op_function("LookupTableFindV2")
        values: Tensor = find(
            self.resource_handle, key_tensor, self.default_value, name=name or f"{self.name}_Lookup"
        )
        values.set_shape(key_tensor.shape)
        return values


class TableInitializer(Protocol):
    """An object that fills a StaticHashTable, such as a KeyValueTensorInitializer."""

    @property
    def key_dtype(self) -> DataType:
        """The type of the keys."""

    @property
    def value_dtype(self) -> DataType:
        """The type of the values."""

    @property
    def shared_name(self) -> str:
        """The name by which tables of the same content are shared; empty if they are not."""

    def initialize(self, table: LookupTable) -> Operation:
        """Add an operation that fills `table`."""


class StaticHashTable(LookupTable):
    """A table that is filled once, when `initializer` or `tables_initializer()` runs."""

    def __init__(
        self, initializer: TableInitializer, default_value: TensorLike, name: str | None = None
    ) -> None:
        """Create the table; `default_value` is the value of keys that it does not have."""
        handle = op_function("HashTableV2")(
            key_dtype=initializer.key_dtype,
            value_dtype=initializer.value_dtype,
            shared_name=initializer.shared_name,
            name=name or "hash_table",
        )
        default = convert_to_tensor(default_value, initializer.value_dtype, "default_value")
        super().__init__(handle, default, initializer.key_dtype)
        self.initializer: Operation = initializer.initialize(self)
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, self.initializer)


class MutableHashTable(LookupTable):
    """A table that operations can write."""

    def __init__(
        self,
        key_dtype: DTypeLike,
        value_dtype: DTypeLike,
        default_value: TensorLike,
        shared_name: str | None = None,
        name: str = "MutableHashTable",
    ) -> None:
        """Create the table; `default_value` is the value of keys that it does not have."""
        key_type, value_type = as_dtype(key_dtype), as_dtype(value_dtype)
        handle = op_function("MutableHashTableV2")(
            key_dtype=key_type, value_dtype=value_type, shared_name=shared_name or "", name=name
        )
        super().__init__(handle, convert_to_tensor(default_value, value_type), key_type)

    def insert(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> Operation:
        """Add an operation that sets the values of `keys`."""
        return self._do("LookupTableInsertV2", keys, values, name)

    def remove(self, keys: TensorLike, name: str | None = None) -> Operation:
        """Add an operation that removes `keys`; unknown keys are ignored."""
        key_tensor = convert_to_tensor(keys, self.key_dtype, "keys")
        operation: Operation = op_function("LookupTableRemoveV2")(
            self.resource_handle, key_tensor, name=name
        )
        return operation

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Return all keys `[n]` and their values, in unspecified order."""
        found = op_function("LookupTableExportV2")(
            self.resource_handle, self.key_dtype, self.value_dtype, name=name
        )
        return found[0], found[1]

    def _do(self, op: str, keys: TensorLike, values: TensorLike, name: str | None) -> Operation:
        key_tensor = convert_to_tensor(keys, self.key_dtype, "keys")
        given = convert_to_tensor(values, self.value_dtype, "values")
        operation: Operation = op_function(op)(self.resource_handle, key_tensor, given, name=name)
        return operation
