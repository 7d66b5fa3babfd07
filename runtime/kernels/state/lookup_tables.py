"""Kernels of the ops that initialize, read and change lookup tables.

The older ops declare a handle as a reference to a string, the newer ones as a resource; here both
are ResourceHandles.

TF: tensorflow/core/kernels/lookup_table_op.cc, lookup_table_init_op.cc, lookup_util.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, OutOfRangeError
from runtime.framework.data.dataset import Element, as_dataset
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resources.lookup_table import HashTable, LookupTable
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings
from runtime.kernels.state.lookup_table_files import read_text_file
from runtime.kernels.state.resource_variables import as_handle


def table_of(context: OpKernelContext, handle: ResourceHandle) -> LookupTable:
    """Return the table that `handle` refers to; raise NotFoundError if it does not exist."""
    handle = as_handle(handle)
    if isinstance(handle.resource, LookupTable):
        return handle.resource
    # Every table is registered under the type name of LookupTable, whatever its class is.
    return context.resources.look_up(handle.container, LookupTable, handle.name)  # type: ignore[type-abstract]


def _check_signature(
    context: OpKernelContext,
    table: LookupTable,
    *,
    keys: DataType,
    values: DataType | None = None,
    output: DataType | None = None,
) -> None:
    """Raise InvalidArgumentError unless the op's types are the key and value types of `table`."""
    handle = "resource" if context.node.op.endswith("V2") else "string_ref"

    def signature(key: DataType, value: DataType) -> str:
        types = [handle, key.tf_name, *([value.tf_name] if values is not None else [])]
        return ", ".join(types) + "->" + (value.tf_name if output is not None else "")

    have = signature(keys, values or output or table.value_dtype)
    expected = signature(table.key_dtype, table.value_dtype)
    if have != expected:
        raise InvalidArgumentError(f"Signature mismatch, have: {have} expected: {expected}")


def _tensor(value: np.ndarray, data_type: DataType) -> np.ndarray:
    return np.asarray(value, data_type.numpy)


def lookup_table_find(
    context: OpKernelContext,
    table_handle: ResourceHandle,
    keys: np.ndarray,
    default_value: np.ndarray,
    *,
    Tin: DataType,  # noqa: N803
    Tout: DataType,  # noqa: N803
) -> np.ndarray:
    """LookupTableFind: return the values of `keys`.

    The value of a key that is not in the table is `default_value`.
    """
    table = table_of(context, table_handle)
    _check_signature(context, table, keys=Tin, values=Tout, output=Tout)
    return table.find(_tensor(keys, Tin), _tensor(default_value, Tout))


def lookup_table_insert(
    context: OpKernelContext,
    table_handle: ResourceHandle,
    keys: np.ndarray,
    values: np.ndarray,
    *,
    Tin: DataType,  # noqa: N803
    Tout: DataType,  # noqa: N803
) -> None:
    """LookupTableInsert: add entries to a mutable table, or replace entries that exist."""
    table = table_of(context, table_handle)
    _check_signature(context, table, keys=Tin, values=Tout)
    key_tensor, value_tensor = _tensor(keys, Tin), _tensor(values, Tout)
    table.check_insert(key_tensor, value_tensor)
    table.insert(key_tensor, value_tensor)


def lookup_table_remove(
    context: OpKernelContext,
    table_handle: ResourceHandle,
    keys: np.ndarray,
    *,
    Tin: DataType,  # noqa: N803
) -> None:
    """LookupTableRemove: remove the entries of `keys` from a mutable table."""
    table = table_of(context, table_handle)
    _check_signature(context, table, keys=Tin)
    key_tensor = _tensor(keys, Tin)
    table.batch_shape(key_tensor)
    table.remove(key_tensor)


def lookup_table_import(
    context: OpKernelContext,
    table_handle: ResourceHandle,
    keys: np.ndarray,
    values: np.ndarray,
    *,
    Tin: DataType,  # noqa: N803
    Tout: DataType,  # noqa: N803
) -> None:
    """LookupTableImport: replace all entries of a table.

    If the table is immutable, the op initializes it.
    """
    table = table_of(context, table_handle)
    _check_signature(context, table, keys=Tin, values=Tout)
    key_tensor, value_tensor = _tensor(keys, Tin), _tensor(values, Tout)
    table.check_import(key_tensor, value_tensor)
    table.import_values(key_tensor, value_tensor)


def lookup_table_export(
    context: OpKernelContext,
    table_handle: ResourceHandle,
    *,
    Tkeys: DataType,  # noqa: N803
    Tvalues: DataType,  # noqa: N803
) -> tuple[np.ndarray, np.ndarray]:
    """LookupTableExport: return all keys and all values."""
    table = table_of(context, table_handle)
    exported = table.export_values()
    if (Tkeys, Tvalues) != (table.key_dtype, table.value_dtype):
        raise InvalidArgumentError(
            f"Signature mismatch, have: {Tkeys.tf_name}, {Tvalues.tf_name} "
            f"expected: {table.key_dtype.tf_name}, {table.value_dtype.tf_name}"
        )
    return exported


def lookup_table_size(context: OpKernelContext, table_handle: ResourceHandle) -> np.ndarray:
    """LookupTableSize: return the number of entries, int64."""
    return np.array(table_of(context, table_handle).size, np.int64)


def initialize_table(
    context: OpKernelContext,
    table_handle: ResourceHandle,
    keys: np.ndarray,
    values: np.ndarray,
    *,
    Tkey: DataType,  # noqa: N803
    Tval: DataType,  # noqa: N803
) -> None:
    """InitializeTable: initialize an immutable table with the vectors `keys` and `values`."""
    table = _initializable(context, table_handle)
    _check_signature(context, table, keys=Tkey, values=Tval)
    key_tensor, value_tensor = _tensor(keys, Tkey), _tensor(values, Tval)
    for name, tensor in (("Keys", key_tensor), ("Values", value_tensor)):
        if tensor.ndim != 1:
            raise InvalidArgumentError(
                f"{name} must be a vector, but received {shape_text(tensor.shape)}"
            )
    if key_tensor.size != value_tensor.size:
        raise InvalidArgumentError(
            f"Keys and values must have the same size {key_tensor.size} vs {value_tensor.size}"
        )
    table.initialize(key_tensor, value_tensor)


def _initializable(context: OpKernelContext, handle: ResourceHandle) -> HashTable:
    table = table_of(context, handle)
    if not isinstance(table, HashTable):
        raise InvalidArgumentError("Only a table that is filled once can be initialized")
    return table


def initialize_table_from_text_file(
    context: OpKernelContext,
    table_handle: ResourceHandle,
    filename: np.ndarray,
    *,
    key_index: int,
    value_index: int,
    vocab_size: int,
    delimiter: str,
    offset: int,
) -> None:
    """InitializeTableFromTextFile: initialize an immutable table with the lines of a file."""
    table = _initializable(context, table_handle)
    name = as_strings(filename)
    if name.ndim:
        raise InvalidArgumentError(
            f"filename should be a single string, but got {shape_text(name.shape)}"
        )
    if len(delimiter) != 1:
        raise InvalidArgumentError("delimiter should be only 1 char")
    path = name.item().decode("utf-8", "surrogateescape")
    context.step.files.check_read(path)
    columns = ((key_index, table.key_dtype), (value_index, table.value_dtype))
    keys, values = read_text_file(path, columns, vocab_size, delimiter.encode(), offset)
    table.initialize(keys, values)


def initialize_table_from_dataset(
    context: OpKernelContext, table_handle: ResourceHandle, dataset: np.ndarray
) -> None:
    """InitializeTableFromDataset: initialize a table with the (key, value) elements of a dataset.

    The op does nothing if the table is already initialized.
    """
    table, pairs = _initializable(context, table_handle), as_dataset(dataset)
    if table.is_initialized:
        return
    expected = (table.key_dtype, table.value_dtype)
    if pairs.output_types != expected:
        raise InvalidArgumentError(
            f"A dataset that fills this table has elements of types {_type_names(expected)}, "
            f"got {_type_names(pairs.output_types)}"
        )
    iterator = pairs.iterate(context, "LookupTable")
    elements: list[Element] = []
    while (element := iterator.get_next(context)) is not None:
        context.cancellation.check()
        elements.append(element)
    if not elements:
        raise OutOfRangeError("end of iterator")
    keys, values = (
        np.concatenate([np.empty(0, each.numpy), *map(np.ravel, column)]).astype(each.numpy)
        for each, column in zip(expected, zip(*elements, strict=True), strict=True)
    )
    if keys.size != values.size:
        raise InvalidArgumentError(
            f"Keys and values must have the same size {keys.size} vs {values.size}"
        )
    table.initialize(keys, values)


def _type_names(types: tuple[DataType, ...]) -> str:
    return f"({', '.join(each.tf_name for each in types)})"


KERNELS = (
    KernelDef("InitializeTable", initialize_table),
    KernelDef("InitializeTableFromDataset", initialize_table_from_dataset),
    KernelDef("InitializeTableFromTextFile", initialize_table_from_text_file),
    KernelDef("InitializeTableFromTextFileV2", initialize_table_from_text_file),
    KernelDef("InitializeTableV2", initialize_table),
    KernelDef("LookupTableExport", lookup_table_export),
    KernelDef("LookupTableExportV2", lookup_table_export),
    KernelDef("LookupTableFind", lookup_table_find),
    KernelDef("LookupTableFindV2", lookup_table_find),
    KernelDef("LookupTableImport", lookup_table_import),
    KernelDef("LookupTableImportV2", lookup_table_import),
    KernelDef("LookupTableInsert", lookup_table_insert),
    KernelDef("LookupTableInsertV2", lookup_table_insert),
    KernelDef("LookupTableRemoveV2", lookup_table_remove),
    KernelDef("LookupTableSize", lookup_table_size),
    KernelDef("LookupTableSizeV2", lookup_table_size),
)
