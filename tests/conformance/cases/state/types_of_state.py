"""Element types of loops, variables, barriers, accumulators, tensors maps and similar state."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

F16, F32, F64, INT = DataType.HALF, DataType.FLOAT, DataType.DOUBLE, DataType.INT32
BF16, TEXT = DataType.BFLOAT16, DataType.STRING
QINT32 = DataType.QINT32
COMMON = (
    F64, INT, DataType.UINT8, DataType.INT16, DataType.INT8, TEXT, DataType.COMPLEX64,
    DataType.INT64, DataType.BOOL, BF16, DataType.UINT16, DataType.COMPLEX128, F16,
    DataType.UINT32, DataType.UINT64,
)  # fmt: skip
# Quantised type → the plain type of the same bits, which can be a Const and be fetched.
PLAIN = {
    DataType.QINT8: DataType.INT8,
    DataType.QUINT8: DataType.UINT8,
    DataType.QUINT16: DataType.UINT16,
    QINT32: INT,
}
QUANTIZED = (DataType.QINT8, DataType.QUINT8, QINT32)
FLOAT8 = (DataType.FLOAT8_E5M2, DataType.FLOAT8_E4M3FN)
UNDER_A_BYTE = (
    DataType.INT4,
    DataType.UINT4,
    DataType.INT2,
    DataType.UINT2,
    DataType.FLOAT4_E2M1FN,
)
SERIALIZED = (
    F64, DataType.INT16, DataType.INT8, DataType.UINT16, DataType.COMPLEX128, DataType.UINT32,
    DataType.UINT64,
)  # fmt: skip
STORE = {"shared_name": "store"}
Output = tuple[str, DataType]


class TypedGraph(Graph):
    """A graph whose values are all of one element type."""

    def __init__(self, data_type: DataType) -> None:
        super().__init__()
        self.data_type = data_type

    def values(self, *numbers: int) -> Output:
        """Return a vector of the graph's element type."""
        plain = PLAIN.get(self.data_type, self.data_type)
        if plain == TEXT:
            array = np.array([str(number).encode() for number in numbers], object)
        else:
            array = np.array(numbers, plain.numpy)
        given = self.add("Const", dtype=plain, value=array)[0]
        return given if plain == self.data_type else self.bitcast(given, self.data_type)

    def bitcast(self, value: Output, data_type: DataType) -> Output:
        """Return the value bitcast to another type."""
        return self.add("Bitcast", value, type=data_type)[0]

    def case(self, op: str, *fetches: Output, targets: tuple[str, ...] = ()) -> Case:
        """Return a case of one step that fetches outputs, quantised ones as plain numbers."""
        names = []
        for each in fetches:
            plain = PLAIN.get(each[1])
            names.append((self.bitcast(each, plain) if plain else each)[0])
        name = f"{op}_{self.data_type.name.lower()}"
        return Case(name, self.graph_def, (Step({}, tuple(names), targets),))

    def variable(self, *numbers: int) -> Output:
        """Return an assigned reference variable."""
        held = self.add("VariableV2", dtype=self.data_type, shape=(len(numbers),), name="held")[0]
        return self.add("Assign", held, self.values(*numbers), name="assign")[0]

    def resource(self, *numbers: int) -> Output:
        """Return the handle of a resource variable; the node `assign` sets its value."""
        held = self.add(
            "VarHandleOp", dtype=self.data_type, shape=(len(numbers),), shared_name="held"
        )[0]
        self.add("AssignVariableOp", held, self.values(*numbers), name="assign")
        return held


def loop(data_type: DataType) -> Case:
    """Three iterations of a loop with an unchanged loop variable."""
    graph = TypedGraph(data_type)
    merges = []
    for index, value in enumerate((np.int32(0), graph.values(1, 0, 3))):
        entered = graph.add("Enter", value, frame_name="loop")[0]
        merges += graph.add("Merge", [entered, entered])[:1]
        graph.graph_def.node[-1].input[1] = f"next{index}"
    limit = graph.add("Enter", np.int32(3), frame_name="loop", is_constant=True)[0]
    one = graph.add("Enter", np.int32(1), frame_name="loop", is_constant=True)[0]
    goes_on = graph.add("LoopCond", graph.add("Less", merges[0], limit)[0])[0]
    counter, carried = (graph.add("Switch", merge, goes_on) for merge in merges)
    graph.add("NextIteration", graph.add("Add", counter[1], one)[0], name="next0")
    graph.add("NextIteration", carried[1], name="next1")
    exits = [graph.add("Exit", switch[0])[0] for switch in (counter, carried)]
    return graph.case("loop", *exits)


def slice_of_reference(data_type: DataType) -> Case:
    """Replace two elements of a reference variable by a slice assignment."""
    graph = TypedGraph(data_type)
    bounds = [np.array([each], np.int32) for each in (1, 4, 2)]
    held = graph.variable(1, 0, 3, 4)
    changed = graph.add("StridedSliceAssign", held, *bounds, graph.values(1, 5))[0]
    return graph.case("slice_of_reference", graph.add("Identity", changed)[0])


def slice_of_temporary(data_type: DataType) -> Case:
    """Replace all elements of a temporary variable, because Assign rejects these types."""
    graph = TypedGraph(data_type)
    bounds = [np.array([each], np.int32) for each in (0, 3, 1)]
    held = graph.add("TemporaryVariable", dtype=data_type, shape=(3,), var_name="held")[0]
    changed = graph.add("StridedSliceAssign", held, *bounds, graph.values(1, 2, 4))[0]
    kept = graph.add("DestroyTemporaryVariable", changed, var_name="held")[0]
    return graph.case("slice_of_temporary", kept)


def assigned(data_type: DataType) -> Case:
    """Assign a resource variable and read it."""
    graph = TypedGraph(data_type)
    held = graph.resource(1, 0, 1)
    read = graph.add("ReadVariableOp", held, dtype=data_type, control=["assign"])[0]
    return graph.case("assigned", read)


def slice_of_resource(data_type: DataType) -> Case:
    """Replace two elements of a resource variable; ReadVariableOp rejects these types."""
    graph = TypedGraph(data_type)
    bounds = [np.array([each], np.int32) for each in (1, 4, 2)]
    held, everything = graph.resource(1, 0, 3, 4), np.array([0, 1, 2, 3], np.int32)
    inputs = (held, *bounds, graph.values(1, 5))
    graph.add("ResourceStridedSliceAssign", *inputs, name="change", control=["assign"])
    read = graph.add("ResourceGather", held, everything, dtype=data_type, control=["change"])[0]
    return graph.case("slice_of_resource", read)


def gathered(data_type: DataType) -> Case:
    """Gather elements of a resource variable."""
    graph = TypedGraph(data_type)
    indices = np.array([2, 0, 2], np.int32)
    held = graph.resource(1, 0, 3)
    found = graph.add("ResourceGather", held, indices, dtype=data_type, control=["assign"])[0]
    return graph.case("gathered", found)


def reference(data_type: DataType) -> Case:
    """Assign a reference variable and read it."""
    graph = TypedGraph(data_type)
    return graph.case("reference", graph.add("Identity", graph.variable(1, 0, 3))[0])


def barrier(data_type: DataType) -> Case:
    """Insert three elements into a barrier and take them."""
    graph = TypedGraph(data_type)
    made = graph.add("Barrier", component_types=[data_type], shapes=[()], shared_name="b")[0]
    keys = np.array([b"c", b"a", b"b"], object)
    graph.add(
        "BarrierInsertMany", made, keys, graph.values(1, 0, 3), component_index=0, name="insert"
    )
    taken = graph.add(
        "BarrierTakeMany", made, np.int32(3), component_types=[data_type], control=["insert"]
    )
    return graph.case("barrier", *taken)


def store(data_type: DataType) -> Case:
    """Store the rows of a sparse tensor in a tensors map and take them in reverse order."""
    graph = TypedGraph(data_type)
    indices = np.array([[0, 1], [0, 2], [2, 0]], np.int64)
    shape = np.array([3, 4], np.int64)
    kept = graph.add("AddManySparseToTensorsMap", indices, graph.values(1, 0, 3), shape, **STORE)
    backwards = graph.add("ReverseV2", kept[0], np.array([0], np.int32))[0]
    taken = graph.add("TakeManySparseFromTensorsMap", backwards, dtype=data_type, **STORE)
    return graph.case("store", *taken)


def accumulator(data_type: DataType) -> Case:
    """Apply two gradients to an accumulator and take their mean."""
    graph = TypedGraph(data_type)
    made = graph.add("ConditionalAccumulator", dtype=data_type, shape=(2,), shared_name="a")[0]
    names = ("first", "second")
    for name, numbers in zip(names, ((1, 4), (5, 6)), strict=True):
        graph.add(
            "AccumulatorApplyGradient", made, np.int64(0), graph.values(*numbers), name=name,
            control=[] if name == "first" else ["first"],
        )  # fmt: skip
    mean = graph.add(
        "AccumulatorTakeGradient", made, np.int32(2), dtype=data_type, control=["second"]
    )
    return graph.case("accumulator", *mean)


def formatted(data_type: DataType) -> Case:
    """Format numbers as text."""
    graph = TypedGraph(data_type)
    text = graph.add("StringFormat", [graph.values(1, 0, 3)], template="<{}>", placeholder="{}")
    return graph.case("formatted", *text)


def switched(data_type: DataType) -> Case:
    """Forward a vector to the second of three outputs."""
    graph = TypedGraph(data_type)
    given = (graph.values(1, 0, 3), np.int32(1))
    outputs = graph.add("_SwitchN", *given, num_outs=3, name="switched")
    return graph.case("switched", outputs[1])


def sparse_rows(data_type: DataType) -> Case:
    """Take the first element of a SparseTensorSliceDataset."""
    graph = TypedGraph(data_type)
    indices = np.array([[0, 0], [0, 2], [1, 1]], np.int64)
    values, shape = graph.values(1, 0, 3), np.array([2, 3], np.int64)
    made = graph.add("SparseTensorSliceDataset", indices, values, shape)[0]
    signature: dict[str, Any] = {
        "output_types": [DataType.INT64, data_type, DataType.INT64],
        "output_shapes": [(-1, 1), (-1,), (1,)],
    }
    rows = graph.add("IteratorV2", shared_name="rows", container="", **signature)[0]
    graph.add("MakeIterator", made, rows, name="begin")
    row = graph.add("IteratorGetNext", rows, control=["begin"], **signature)
    return graph.case("sparse_rows", *row)


def serialized(data_type: DataType) -> Case:
    """Serialize a vector to the bytes of a TensorProto."""
    graph = TypedGraph(data_type)
    return graph.case("serialized", *graph.add("SerializeTensor", graph.values(1, 0, 3)))


CASES = (
    *(switched(each) for each in (TEXT, DataType.BOOL, *QUANTIZED)),
    *(sparse_rows(each) for each in (*COMMON, *QUANTIZED)),
    *(serialized(each) for each in SERIALIZED),
    *(loop(each) for each in COMMON),
    *(slice_of_reference(each) for each in (*COMMON, *QUANTIZED)),
    *(barrier(each) for each in COMMON),
    *(store(each) for each in COMMON),
    *(accumulator(each) for each in (*COMMON, F32, *QUANTIZED)),
    *(slice_of_temporary(each) for each in FLOAT8),
    *(assigned(each) for each in UNDER_A_BYTE),
    *(slice_of_resource(each) for each in QUANTIZED),
    *(gathered(each) for each in QUANTIZED),
    reference(DataType.QUINT16),
    formatted(DataType.COMPLEX128),
)
