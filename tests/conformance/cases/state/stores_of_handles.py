"""Tensors of resource handles and of variants in tensor lists, TensorArrays, barriers, tables."""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.cases.state.types_of_handles import (
    RESOURCE,
    VARIANT,
    HandleGraph,
    Moves,
    Output,
    ints,
    longs,
    moved,
)

STORE = {"shared_name": "store"}


def tensor_array(graph: HandleGraph, version: str, way: str) -> Output:
    """Write handles to a TensorArray and return them from the op that `way` selects."""
    handle, *flow = graph.add(
        f"TensorArray{version}", np.int32(3), dtype=graph.data_type, element_shape=None
    )
    if not flow:
        flow = [graph.add("Const", dtype=DataType.FLOAT, value=np.float32(0))[0]]
    if way == "Split":
        put = graph.add(
            f"TensorArraySplit{version}", handle, graph.vector(1, 2, 3), longs(1, 2, 0), *flow
        )
    elif way == "Scatter":
        put = graph.add(
            f"TensorArrayScatter{version}", handle, ints(1, 0), graph.vector(1, 2), *flow
        )
    else:
        put = flow
        for index in (0, 1):
            put = graph.add(
                f"TensorArrayWrite{version}", handle, np.int32(index), graph.scalar(index), *put
            )
    if way == "Gather":
        return graph.add(
            f"TensorArrayGather{version}", handle, ints(1, 0), *put, dtype=graph.data_type
        )[0]
    return graph.add(f"TensorArrayRead{version}", handle, np.int32(1), *put, dtype=graph.data_type)[
        0
    ]


def barrier(graph: HandleGraph) -> Output:
    """Insert two handles into a barrier and take them."""
    kind = [graph.data_type]
    made = graph.add("Barrier", component_types=kind, shapes=[()], shared_name="b")[0]
    keys = np.array([b"a", b"b"], object)
    graph.add("BarrierInsertMany", made, keys, graph.vector(1, 2), component_index=0, name="insert")
    return graph.add(
        "BarrierTakeMany", made, np.int32(2), component_types=kind, control=["insert"]
    )[2]


def stored(graph: HandleGraph) -> Output:
    """Store the rows of a sparse tensor of handles in a tensors map and take them."""
    indices = np.array([[0, 1], [0, 2], [2, 0]], np.int64)
    kept = graph.add(
        "AddManySparseToTensorsMap", indices, graph.vector(1, 2, 3), longs(3, 4), **STORE
    )[0]
    return graph.add("TakeManySparseFromTensorsMap", kept, dtype=graph.data_type, **STORE)[1]


def serialized(graph: HandleGraph, op: str) -> Output:
    """Serialize a sparse tensor of handles to variants; return its deserialized values."""
    indices = np.array([[0, 1], [1, 0]], np.int64)
    packed = graph.add(op, indices, graph.vector(1, 2), longs(2, 2), out_type=VARIANT)[0]
    return graph.add("DeserializeSparse", packed, dtype=graph.data_type)[1]


def table(graph: HandleGraph, op: str) -> Output:
    """Insert handles into a hash table and look them up."""
    made = graph.add(op, key_dtype=DataType.INT64, value_dtype=graph.data_type)[0]
    version = "" if op == "MutableHashTable" else "V2"
    insert = f"LookupTableInsert{version}"
    graph.add(insert, made, longs(3, 4), graph.vector(1, 2), name="insert")
    find = f"LookupTableFind{version}"
    return graph.add(find, made, longs(4, 9), graph.scalar(7), control=["insert"])[0]


def dense_table(graph: HandleGraph, op: str) -> Output:
    """Insert handles into a dense hash table and look them up."""
    # TensorFlow has kernels for string keys with resources and for integer keys with variants.
    key_type = np.bytes_ if graph.data_type is RESOURCE else np.int64
    empty, deleted, one, other, unknown = np.arange(5).astype(key_type)
    made = graph.add(op, empty, deleted, value_dtype=graph.data_type)[0]
    graph.add("LookupTableInsertV2", made, np.array([one, other]), graph.vector(1, 2), name="put")
    keys = np.array([other, unknown])
    return graph.add("LookupTableFindV2", made, keys, graph.scalar(7), control=["put"])[0]


def sliced_dataset(graph: HandleGraph) -> Output:
    """Return the values of the first element of a SparseTensorSliceDataset."""
    indices = np.array([[0, 0], [0, 2], [1, 1]], np.int64)
    made = graph.add("SparseTensorSliceDataset", indices, graph.vector(1, 2, 3), longs(2, 3))[0]
    signature = {
        "output_types": [DataType.INT64, graph.data_type, DataType.INT64],
        "output_shapes": [(-1, 1), (-1,), (1,)],
    }
    rows = graph.add("IteratorV2", shared_name="rows", container="", **signature)[0]
    graph.add("MakeIterator", made, rows, name="begin")
    return graph.add("IteratorGetNext", rows, control=["begin"], **signature)[1]


STORES: Moves = {
    "TensorListStack": lambda g: (
        g.add("TensorListStack", g.list_of(1, 2), ints(), element_dtype=g.data_type)[0], 2,
    ),
    "TensorListGetItem": lambda g: (
        g.add("TensorListGetItem", g.list_of(1, 2), np.int32(1), ints(),
              element_dtype=g.data_type)[0], 1,
    ),
    "TensorListConcat": lambda g: (
        g.add("TensorListConcat", g.list_of_vectors(), element_dtype=g.data_type,
              element_shape=(2,))[0], 4,
    ),
    "TensorListConcatV2": lambda g: (
        g.add("TensorListConcatV2", g.list_of_vectors(), ints(2), longs(0),
              element_dtype=g.data_type)[0], 4,
    ),
    "TensorListGather": lambda g: (
        g.add("TensorListGather", g.list_of(1, 2, 3), ints(2, 0), ints(),
              element_dtype=g.data_type)[0], 2,
    ),
    "TensorListPopBack": lambda g: (
        g.add("TensorListPopBack", g.list_of(1, 2), ints(), element_dtype=g.data_type)[1], 1,
    ),
    "TensorListPushBackBatch": lambda g: (g.first_of(
        g.add("Unpack", g.add("TensorListPushBackBatch",
              g.add("Pack", [g.list_of(1), g.list_of(2)])[0], g.vector(3, 4))[0], num=2)[1], 1), 1,
    ),
    "TensorListScatter": lambda g: (
        g.first_of(g.add("TensorListScatter", g.vector(1, 2), ints(1, 0), ints())[0], 1), 1,
    ),
    "TensorListScatterV2": lambda g: (
        g.first_of(g.add("TensorListScatterV2", g.vector(1, 2), ints(1, 0), ints(),
                         np.int32(3))[0], 1), 1,
    ),
    "TensorListScatterIntoExistingList": lambda g: (
        g.first_of(g.add("TensorListScatterIntoExistingList", g.list_of(1, 2, 3), g.vector(5, 6),
                         ints(2, 0))[0], 2), 1,
    ),
    "TensorListSplit": lambda g: (
        g.first_of(g.add("TensorListSplit", g.vector(1, 2, 3), ints(-1), longs(1, 2))[0], 1,
                   ints(-1)), 2,
    ),
    "TensorArrayReadV3": lambda g: (tensor_array(g, "V3", "Read"), 1),
    "TensorArrayGatherV3": lambda g: (tensor_array(g, "V3", "Gather"), 2),
    "TensorArraySplitV3": lambda g: (tensor_array(g, "V3", "Split"), 2),
    "TensorArrayScatterV3": lambda g: (tensor_array(g, "V3", "Scatter"), 1),
    "TensorArrayReadV2": lambda g: (tensor_array(g, "V2", "Read"), 1),
    "TensorArrayGatherV2": lambda g: (tensor_array(g, "V2", "Gather"), 2),
    "TensorArraySplitV2": lambda g: (tensor_array(g, "V2", "Split"), 2),
    "TensorArrayScatterV2": lambda g: (tensor_array(g, "V2", "Scatter"), 1),
    "BarrierInsertMany": lambda g: (barrier(g), 2),
    "AddManySparseToTensorsMap": lambda g: (stored(g), 3),
    "SparseReorder": lambda g: (
        g.add("SparseReorder", np.array([[1, 0], [0, 1]], np.int64), g.vector(1, 2),
              longs(2, 2))[1], 2,
    ),
    "SparseSlice": lambda g: (
        g.add("SparseSlice", np.array([[0, 1], [1, 0]], np.int64), g.vector(1, 2), longs(2, 2),
              longs(0, 0), longs(2, 1))[1], 1,
    ),
    "SparseSplit": lambda g: (
        g.add("SparseSplit", np.int64(0), np.array([[0, 1], [1, 0]], np.int64), g.vector(1, 2),
              longs(2, 2), num_split=2)[3], 1,
    ),
    "SparseConcat": lambda g: (
        g.add("SparseConcat", [np.array([[0, 1]], np.int64), np.array([[0, 0]], np.int64)],
              [g.vector(1), g.vector(2)], [longs(1, 2), longs(1, 2)], concat_dim=1)[1], 2,
    ),
    "SerializeManySparse": lambda g: (serialized(g, "SerializeManySparse"), 2),
    "SerializeSparse": lambda g: (serialized(g, "SerializeSparse"), 2),
    "MutableHashTableV2": lambda g: (table(g, "MutableHashTableV2"), 2),
    "MutableHashTable": lambda g: (table(g, "MutableHashTable"), 2),
    "AnonymousMutableHashTable": lambda g: (table(g, "AnonymousMutableHashTable"), 2),
    "MutableDenseHashTableV2": lambda g: (dense_table(g, "MutableDenseHashTableV2"), 2),
    "AnonymousMutableDenseHashTable": lambda g: (
        dense_table(g, "AnonymousMutableDenseHashTable"), 2,
    ),
    "SparseTensorSliceDataset": lambda g: (sliced_dataset(g), 2),
}  # fmt: skip

# Ops that TensorFlow runs with variants but not with resources.
VARIANT_ONLY = {
    "AnonymousMutableHashTable", "MutableHashTable", "MutableHashTableV2", "TensorArrayGatherV2",
    "TensorArrayGatherV3", *(op for op in STORES if op.startswith("TensorList")),
}  # fmt: skip
# Pairs with a kernel that never succeeds in TensorFlow: tools/record/attempted_types.py tries them.
OUT_OF_REACH = {("SparseConcat", RESOURCE), ("SparseReorder", RESOURCE)}

CASES = tuple(
    moved(op, STORES, each)
    for op in STORES
    for each in (RESOURCE, VARIANT)
    if (op, each) not in OUT_OF_REACH and not (each is RESOURCE and op in VARIANT_ONLY)
)
