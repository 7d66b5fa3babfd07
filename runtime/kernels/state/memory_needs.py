"""What the kernels of this room allocate.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple. A change of a variable
copies it first unless nobody else has read it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.foundation.errors import OpError
from runtime.framework import op_def_registry
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import MemoryNeed, OpKernelContext
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resources.tensor_array import TensorArray
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.memory_needs import gather_nd_need, gather_need
from runtime.kernels.memory_sizes import (
    NUMBER,
    POINTER,
    STRING,
    VIEW,
    dense,
    elements,
    largest_in,
    number,
    shape_of,
    size_of,
    volume,
)
from runtime.kernels.state.barriers import barrier_of
from runtime.kernels.state.lookup_tables import table_of
from runtime.kernels.state.resource_variables import as_handle, find_variable
from runtime.kernels.state.training import RULES

V = TensorValue
C = OpKernelContext
INDEX = 8
ENTRY = 400  # bytes of a key of a hash table, with its value, in a dictionary and in lists
ITEM = 96  # bytes of an unwritten item of a TensorArray


def _value(context: C, handle: ResourceHandle) -> np.ndarray | None:
    """Return the array of a variable, without taking it from the variable; None if none is set."""
    variable = find_variable(context, handle)
    return None if variable is None else variable.peek()


def _held(context: C, handle: ResourceHandle) -> int:
    return size_of(_value(context, handle))


def _gather(context: C, handle: ResourceHandle, indices: V, *, batch_dims: int) -> int:
    value = _value(context, handle)
    return 0 if value is None else gather_need(value, indices, batch_dims)


def _gather_nd(context: C, handle: ResourceHandle, indices: V) -> int:
    value = _value(context, handle)
    return 0 if value is None else gather_nd_need(value, indices)


def _scattered(variable: int, indices: V, updates: V) -> int:
    # division of integers keeps signs and magnitudes of the whole variable
    return 4 * variable + 6 * INDEX * elements(indices) + 4 * size_of(updates)


def _scatter(ref: V, indices: V, updates: V) -> int:
    return _scattered(size_of(ref), indices, updates)


def _resource_scatter(context: C, handle: ResourceHandle, indices: V, updates: V) -> int:
    return _scattered(_held(context, handle), indices, updates)


def _updated(context: C, handle: ResourceHandle, value: V) -> int:
    return _held(context, handle) + 2 * size_of(value)


def _slice_assigned(
    context: C, handle: ResourceHandle, begin: V, end: V, strides: V, value: V
) -> int:
    return _held(context, handle) + 2 * size_of(value)


def _counted(context: C, handle: ResourceHandle) -> int:
    return 2 * _held(context, handle)


def _training(rule: str, is_sparse: bool, is_resource: bool) -> MemoryNeed:
    """Return the bound of an update of the variables of a training rule."""
    count = RULES[rule].variables

    def of_variables(context: C, *inputs: Any) -> int:
        return rest(sum(_held(context, each) for each in inputs[:count]), inputs)

    def of_references(*inputs: V) -> int:
        return rest(size_of(*inputs[:count]), inputs)

    def rest(variables: int, inputs: tuple[V, ...]) -> int:
        # each variable is copied; a rule has at most 10 temporaries of the gradient's size
        rows = elements(*inputs[count:]) * 12 * INDEX if is_sparse else 0
        temporaries = 10 * size_of(*inputs[count:])
        return variables + temporaries * (1 + count * is_sparse) + rows

    return of_variables if is_resource else of_references


def _training_needs() -> dict[str, MemoryNeed]:
    return {
        op: _training(rule, bool(sparse), bool(resource))
        for rule in RULES
        for sparse in ("", "Sparse")
        for resource in ("", "Resource")
        if op_def_registry.find(op := f"{resource}{sparse}Apply{rule}") is not None
    }


def _temporary(*, dtype: DataType, shape: PartialShape) -> int:
    return dense(shape or (), dtype.numpy)


def _found(table_handle: V, keys: V, default_value: V) -> int:
    return elements(keys) * (size_of(default_value) + ENTRY) + 2 * size_of(keys)


def _inserted(table_handle: V, keys: V, values: V) -> int:
    return elements(keys) * ENTRY + elements(values) * NUMBER + 4 * size_of(keys, values)


def _removed(table_handle: V, keys: V) -> int:
    return elements(keys) * ENTRY


def _exported(context: C, table_handle: ResourceHandle) -> int:
    table = table_of(context, table_handle)
    return 2 * table.bytes_held + int(table.size) * ENTRY


def _array(handle: V) -> TensorArray | None:
    try:
        found = as_handle(handle).resource
    except OpError:
        return None
    return found if isinstance(found, TensorArray) else None


def _items(size: V) -> int:
    return max(number(size), 0) * ITEM


def _grown(handle: V, index: V, *rest: V) -> int:
    array = _array(handle)
    written = size_of(rest[0]) if rest else 0  # an array of gradients adds to what it has
    return written + (max(largest_in(index) + 1 - len(array), 0) * ITEM if array else 0)


def _rows(handle: V, indices: V, value: V, flow_in: V) -> int:
    count = (shape_of(value) or (0,))[0]
    return count * (VIEW + ITEM) + size_of(value) + _grown(handle, indices)


def _split(handle: V, value: V, lengths: V, flow_in: V) -> int:
    return elements(lengths) * (VIEW + 2 * ITEM) + size_of(value)


def _gathered(handle: V, indices: V, flow_in: V) -> int:
    array = _array(handle)
    return 0 if array is None else elements(indices) * (_item_bytes(array) + 6 * POINTER)


def _item_bytes(array: TensorArray) -> int:
    return (
        max((volume(each) for each in array.item_shapes()), default=0) * array.dtype.numpy.itemsize
    )


def _concatenated(handle: V, flow_in: V) -> int:
    array = _array(handle)
    if array is None:
        return 0
    shapes = array.item_shapes()
    return 2 * sum(map(volume, shapes)) * array.dtype.numpy.itemsize + len(shapes) * (VIEW + ITEM)


def _read(handle: V, index: V, flow_in: V) -> int:
    array = _array(handle)
    return 0 if array is None else _item_bytes(array)


def _made_gradient(handle: V, flow_in: V, *shape_to_prepend: V) -> int:
    array = _array(handle)
    return 0 if array is None else len(array) * (ITEM + VIEW)


def _taken(context: C, handle: ResourceHandle, num_elements: V) -> int:
    found = barrier_of(context, handle)
    pairs = zip(found.shapes, found.component_types, strict=True)
    each = sum(dense(shape or (), kind.numpy) for shape, kind in pairs)
    return max(number(num_elements), 0) * (each + 2 * STRING + INDEX)


def _inserted_many(handle: V, keys: V, values: V) -> int:
    return elements(keys) * (ENTRY + VIEW)


def _staged(*inputs: V) -> int:
    return elements(*inputs[:2]) * 4 * STRING


_COMBINES = ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")
_ND = ("Add", "Max", "Min", "Sub", "Update")

MEMORY_NEEDS: dict[str, MemoryNeed] = {
    "ResourceGather": _gather,
    "ResourceGatherNd": _gather_nd,
    **{f"Scatter{each}": _scatter for each in _COMBINES},
    **{f"ScatterNd{each}": _scatter for each in _ND},
    **{f"ResourceScatter{each}": _resource_scatter for each in _COMBINES},
    **{f"ResourceScatterNd{each}": _resource_scatter for each in _ND},
    "AssignAddVariableOp": _updated,
    "AssignSubVariableOp": _updated,
    "ResourceStridedSliceAssign": _slice_assigned,
    "ResourceCountUpTo": _counted,
    **_training_needs(),
    "TemporaryVariable": _temporary,
    **dict.fromkeys(("LookupTableFind", "LookupTableFindV2"), _found),
    **dict.fromkeys(
        (
            "InitializeTable", "InitializeTableV2", "LookupTableImport", "LookupTableImportV2",
            "LookupTableInsert", "LookupTableInsertV2",
        ),
        _inserted,
    ),
    "LookupTableRemoveV2": _removed,
    **dict.fromkeys(("LookupTableExport", "LookupTableExportV2"), _exported),
    **dict.fromkeys(("TensorArrayV2", "TensorArrayV3"), _items),
    **dict.fromkeys(
        ("TensorArrayGradV2", "TensorArrayGradV3", "TensorArrayGradWithShape"), _made_gradient
    ),
    **dict.fromkeys(("TensorArrayWriteV2", "TensorArrayWriteV3"), _grown),
    **dict.fromkeys(("TensorArrayScatterV2", "TensorArrayScatterV3"), _rows),
    **dict.fromkeys(("TensorArraySplitV2", "TensorArraySplitV3"), _split),
    **dict.fromkeys(("TensorArrayGatherV2", "TensorArrayGatherV3"), _gathered),
    **dict.fromkeys(("TensorArrayConcatV2", "TensorArrayConcatV3"), _concatenated),
    **dict.fromkeys(("TensorArrayReadV2", "TensorArrayReadV3"), _read),
    "BarrierTakeMany": _taken,
    "BarrierInsertMany": _inserted_many,
    **dict.fromkeys(("MapStage", "OrderedMapStage"), _staged),
}  # fmt: skip

INPUT_MULTIPLES: dict[str, int] = {
    # handles, and values that a resource gives or keeps
    **dict.fromkeys(
        (
            "AccumulatorNumAccumulated", "AccumulatorSetGlobalStep", "AnonymousHashTable",
            "AnonymousMutableHashTable", "ExperimentalThreadPoolHandle", "ThreadPoolHandle",
            "AnonymousMutableHashTableOfTensors", "Assign", "AssignVariableOp", "Barrier",
            "BarrierClose", "BarrierIncompleteSize", "BarrierReadySize", "ConditionalAccumulator",
            "ConsumeMutexLock", "DeleteSessionTensor", "DestroyResourceOp",
            "DestroyTemporaryVariable", "DisableCopyOnRead", "GetSessionHandle",
            "GetSessionHandleV2", "GetSessionTensor", "HashTable", "HashTableV2",
            "IsVariableInitialized", "LookupTableSize", "LookupTableSizeV2", "MapClear",
            "MapIncompleteSize", "MapPeek", "MapSize", "MapUnstage", "MapUnstageNoKey",
            "MutableHashTable", "MutableHashTableOfTensors",
            "MutableHashTableOfTensorsV2", "MutableHashTableV2", "MutexLock", "MutexV2",
            "OrderedMapClear", "OrderedMapIncompleteSize", "OrderedMapPeek", "OrderedMapSize",
            "OrderedMapUnstage", "OrderedMapUnstageNoKey", "ReadVariableOp",
            "ResourceAccumulatorNumAccumulated", "ResourceAccumulatorSetGlobalStep",
            "ResourceConditionalAccumulator", "SparseConditionalAccumulator", "Stack",
            "StackClose", "StackCloseV2", "StackPop", "StackPopV2", "StackPush", "StackPushV2",
            "StackV2", "Stage", "StageClear", "StagePeek", "StageSize", "TensorArrayCloseV2",
            "TensorArrayCloseV3", "TensorArraySizeV2", "TensorArraySizeV3", "Unstage",
            "VarHandleOp", "VarIsInitializedOp", "Variable", "VariableShape", "VariableV2",
        ),
        0,
    ),
    # what an accumulator gives is divided by the number of gradients
    **dict.fromkeys(
        ("AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient",
         "SparseAccumulatorTakeGradient"),
        0,
    ),
    # keys that mark empty and deleted places, in the table's type
    **dict.fromkeys(("AnonymousMutableDenseHashTable", "MutableDenseHashTableV2"), 4),
    **dict.fromkeys(("AssignAdd", "AssignSub", "CountUpTo", "StridedSliceAssign"), 2),
    **dict.fromkeys(("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient"), 4),
    "SparseAccumulatorApplyGradient": 24,
    **dict.fromkeys(
        (
            "InitializeTableFromDataset", "InitializeTableFromTextFile",
            "InitializeTableFromTextFileV2",
        ),
        1,
    ),
}  # fmt: skip
