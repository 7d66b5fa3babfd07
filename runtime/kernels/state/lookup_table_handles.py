"""Kernels of the ops that create lookup tables and return their handles.

The older ops declare a handle as a reference to a string, the newer ones as a resource; here both
are ResourceHandles.

TF: tensorflow/core/kernels/lookup_table_op.h (LookupTableOp, AnonymousLookupTableOp)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resource_manager import DEFAULT_CONTAINER, ResourceHandle
from runtime.framework.resources.lookup_table import HashTable, LookupTable
from runtime.framework.resources.mutable_hash_table import MutableDenseHashTable, MutableHashTable
from runtime.framework.shapes import shape_text

_ANONYMOUS = "Anonymous"  # the container name that TensorFlow reports for tables without a name


def _named_handle(
    context: OpKernelContext,
    create: Callable[[], LookupTable],
    container: str,
    shared_name: str,
    use_node_name_sharing: bool,
) -> ResourceHandle:
    """Return the handle of a named table, which is created on first use."""
    if shared_name:
        name = shared_name
    elif use_node_name_sharing:
        name = context.node.name
    else:
        # The table is private to the node. Its name is the same in every session. The reason is
        # that a session can start with copies of another session's resources, and must then find
        # the copied table.
        name = f"_0_{context.node.name}"
    table = context.resources.look_up_or_create(container, LookupTable, name, create)  # type: ignore[type-abstract]
    wanted = (context.attr("key_dtype"), context.attr("value_dtype"))
    if (table.key_dtype, table.value_dtype) != wanted:
        raise InvalidArgumentError(
            f"Conflicting key/value dtypes {_arrow(*wanted)} "
            f"with {_arrow(table.key_dtype, table.value_dtype)} for table {name}"
        )
    return ResourceHandle(container or DEFAULT_CONTAINER, name, LookupTable.type_name)


def _arrow(key_dtype: DataType, value_dtype: DataType) -> str:
    return f"{key_dtype.tf_name}->{value_dtype.tf_name}"


def _anonymous_handle(table: LookupTable) -> ResourceHandle:
    name = f"Resource-at-{id(table):#x}"
    return ResourceHandle(_ANONYMOUS, name, LookupTable.type_name, resource=table)


def hash_table(
    context: OpKernelContext,
    *,
    container: str,
    shared_name: str,
    use_node_name_sharing: bool,
    key_dtype: DataType,
    value_dtype: DataType,
) -> ResourceHandle:
    """HashTable: return the handle of a table that is initialized once and never changes again."""

    def create() -> LookupTable:
        return HashTable(key_dtype, value_dtype)

    return _named_handle(context, create, container, shared_name, use_node_name_sharing)


def anonymous_hash_table(*, key_dtype: DataType, value_dtype: DataType) -> ResourceHandle:
    """AnonymousHashTable: create a table that only the returned handle refers to."""
    return _anonymous_handle(HashTable(key_dtype, value_dtype))


def mutable_hash_table(
    context: OpKernelContext,
    *,
    container: str,
    shared_name: str,
    use_node_name_sharing: bool,
    key_dtype: DataType,
    value_dtype: DataType,
) -> ResourceHandle:
    """MutableHashTable: return the handle of a mutable table with scalar keys and values."""

    def create() -> LookupTable:
        return MutableHashTable(key_dtype, value_dtype)

    return _named_handle(context, create, container, shared_name, use_node_name_sharing)


def anonymous_mutable_hash_table(*, key_dtype: DataType, value_dtype: DataType) -> ResourceHandle:
    """AnonymousMutableHashTable: create a table that only the returned handle refers to.

    The keys and values are scalars.
    """
    return _anonymous_handle(MutableHashTable(key_dtype, value_dtype))


def mutable_hash_table_of_tensors(
    context: OpKernelContext,
    *,
    container: str,
    shared_name: str,
    use_node_name_sharing: bool,
    key_dtype: DataType,
    value_dtype: DataType,
    value_shape: tuple[int, ...] | None,
) -> ResourceHandle:
    """MutableHashTableOfTensors: return the handle of a table with vector values.

    The keys are scalars.
    """
    shape = _vector_shape(value_shape)

    def create() -> LookupTable:
        return MutableHashTable(key_dtype, value_dtype, (), shape)

    return _named_handle(context, create, container, shared_name, use_node_name_sharing)


def anonymous_mutable_hash_table_of_tensors(
    *, key_dtype: DataType, value_dtype: DataType, value_shape: tuple[int, ...] | None
) -> ResourceHandle:
    """AnonymousMutableHashTableOfTensors: create a table whose values are vectors.

    Only the returned handle refers to the table.
    """
    shape = _vector_shape(value_shape)
    return _anonymous_handle(MutableHashTable(key_dtype, value_dtype, (), shape))


def _known_shape(shape: tuple[int, ...] | None) -> tuple[int, ...]:
    if shape is None or -1 in shape:
        raise InvalidArgumentError(f"Shape {shape_text(shape)} is not fully defined")
    return shape


def _vector_shape(shape: tuple[int, ...] | None) -> tuple[int, ...]:
    known = _known_shape(shape)
    if len(known) != 1:
        raise InvalidArgumentError(f"Default value must be a vector, got shape {shape_text(known)}")
    return known


def mutable_dense_hash_table(
    context: OpKernelContext,
    empty_key: np.ndarray,
    deleted_key: np.ndarray,
    *,
    container: str,
    shared_name: str,
    use_node_name_sharing: bool,
    key_dtype: DataType,
    value_dtype: DataType,
    value_shape: tuple[int, ...] | None,
    initial_num_buckets: int,
    max_load_factor: float,
) -> ResourceHandle:
    """MutableDenseHashTable: return the handle of a table.

    The keys `empty_key` and `deleted_key` are reserved and can't be inserted.
    """
    _check_buckets(initial_num_buckets, max_load_factor)
    empty, deleted = (np.asarray(key, key_dtype.numpy) for key in (empty_key, deleted_key))

    def create() -> LookupTable:
        shape = _known_shape(value_shape)
        return MutableDenseHashTable(key_dtype, value_dtype, shape, empty, deleted)

    return _named_handle(context, create, container, shared_name, use_node_name_sharing)


def anonymous_mutable_dense_hash_table(
    empty_key: np.ndarray,
    deleted_key: np.ndarray,
    *,
    key_dtype: DataType,
    value_dtype: DataType,
    value_shape: tuple[int, ...] | None,
    initial_num_buckets: int,
    max_load_factor: float,
) -> ResourceHandle:
    """AnonymousMutableDenseHashTable: create a table that only the returned handle refers to.

    The keys `empty_key` and `deleted_key` are reserved and can't be inserted.
    """
    _check_buckets(initial_num_buckets, max_load_factor)
    empty, deleted = (np.asarray(key, key_dtype.numpy) for key in (empty_key, deleted_key))
    shape = _known_shape(value_shape)
    return _anonymous_handle(MutableDenseHashTable(key_dtype, value_dtype, shape, empty, deleted))


def _check_buckets(count: int, max_load_factor: float) -> None:
    """Raise InvalidArgumentError if TensorFlow would raise it for these numbers.

    Here the numbers have no other effect, because these tables have no buckets.
    """
    if count < 4 or count & (count - 1):
        raise InvalidArgumentError(
            f"Number of buckets must be at least 4 and a power of 2, got: {count}"
        )
    if not 0 < max_load_factor < 1:
        raise InvalidArgumentError(
            f"max_load_factor must be between 0 and 1, got: {max_load_factor:g}"
        )


KERNELS = (
    KernelDef("AnonymousHashTable", anonymous_hash_table),
    KernelDef("AnonymousMutableDenseHashTable", anonymous_mutable_dense_hash_table),
    KernelDef("AnonymousMutableHashTable", anonymous_mutable_hash_table),
    KernelDef("AnonymousMutableHashTableOfTensors", anonymous_mutable_hash_table_of_tensors),
    KernelDef("HashTable", hash_table),
    KernelDef("HashTableV2", hash_table),
    KernelDef("MutableDenseHashTableV2", mutable_dense_hash_table),
    KernelDef("MutableHashTable", mutable_hash_table),
    KernelDef("MutableHashTableOfTensors", mutable_hash_table_of_tensors),
    KernelDef("MutableHashTableOfTensorsV2", mutable_hash_table_of_tensors),
    KernelDef("MutableHashTableV2", mutable_hash_table),
)
