"""Ops that move elements, with tensors of resource handles and of variants.

A resource handle refers to a variable, a variant is a tensor list. Each holds a number, which the
case reads through the handles in the op's output. "Handle" below means either.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, from_producer

INT, RESOURCE, VARIANT = DataType.INT32, DataType.RESOURCE, DataType.VARIANT
Output = tuple[str, DataType]


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def longs(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


NO_DIMENSIONS = ints()


class HandleGraph(Graph):
    """A graph whose values are handles of one type: resources or variants."""

    def __init__(self, data_type: DataType) -> None:
        super().__init__()
        self.data_type = data_type
        self.assignments: list[str] = []

    def scalar(self, number: int) -> Output:
        """Return a handle that holds a number."""
        if self.data_type is VARIANT:
            return self.add("TensorListFromTensor", ints(number), ints())[0]
        handle = self.add("VarHandleOp", dtype=INT, shape=(), shared_name=f"held_{number}")[0]
        self.assignments.append(f"assign_{len(self.assignments)}")
        self.add("AssignVariableOp", handle, np.int32(number), name=self.assignments[-1])
        return handle

    def vector(self, *numbers: int) -> Output:
        return self.add("Pack", [self.scalar(number) for number in numbers])[0]

    def matrix(self, rows: int, columns: int) -> Output:
        flat = self.vector(*range(1, rows * columns + 1))
        return self.add("Reshape", flat, ints(rows, columns))[0]

    def reference(self, *numbers: int) -> Output:
        """Return an assigned reference variable of handles."""
        held = self.add("VariableV2", dtype=self.data_type, shape=(len(numbers),), name="held")[0]
        return self.add("Assign", held, self.vector(*numbers), name="assign_held")[0]

    def resource(self, *numbers: int) -> Output:
        """Return the handle of a resource variable of handles, assigned in the first step."""
        held = self.add(
            "VarHandleOp", dtype=self.data_type, shape=(len(numbers),), shared_name="all"
        )[0]
        self.add("AssignVariableOp", held, self.vector(*numbers), name="assign_all")
        self.assignments.append("assign_all")
        return held

    def list_of(self, *numbers: int) -> Output:
        """Return a tensor list of handles."""
        return self.add("TensorListFromTensor", self.vector(*numbers), ints())[0]

    def list_of_vectors(self) -> Output:
        """Return a tensor list of two vectors of handles."""
        return self.add("TensorListFromTensor", self.matrix(2, 2), ints(2))[0]

    def first_of(self, made: Output, index: int, shape: np.ndarray = NO_DIMENSIONS) -> Output:
        """Return the element of a tensor list of handles at an index."""
        where = (made, np.int32(index), shape)
        return self.add("TensorListGetItem", *where, element_dtype=self.data_type)[0]

    def number(self, handle: Output) -> Output:
        """Return the number that a handle holds."""
        if self.data_type is VARIANT:
            return self.add("TensorListGetItem", handle, np.int32(0), ints(), element_dtype=INT)[0]
        return self.add("ReadVariableOp", handle, dtype=INT)[0]

    def numbers(self, handles: Output, count: int) -> list[Output]:
        """Return the numbers that the `count` handles of a tensor hold."""
        flat = self.add("Reshape", handles, ints(count))[0]
        return [self.number(each) for each in self.add("Unpack", flat, num=count)]

    def case(self, op: str, fetches: list[Output], *more: Output) -> Case:
        names = tuple(name for name, _ in (*fetches, *more))
        name = f"{op}_{self.data_type.name.lower()}"
        first = (Step({}, (), tuple(self.assignments)),) if self.assignments else ()
        steps = (*first, Step({}, names))
        return Case(name, self.graph_def, steps)


# Op → function that adds the op and returns a tensor of handles and their number.
Moves = dict[str, Callable[[HandleGraph], tuple[Output, int]]]
MOVES: Moves = {
    "Assign": lambda g: (g.add("Identity", g.reference(1, 2))[0], 2),
    "Fill": lambda g: (g.add("Fill", ints(2), g.scalar(5))[0], 2),
    "GatherV2": lambda g: (g.add("GatherV2", g.vector(1, 2, 3), ints(2, 0), np.int32(0))[0], 2),
    "OneHot": lambda g: (
        g.add("OneHot", ints(1, 0), np.int32(2), g.scalar(5), g.scalar(6))[0], 4,
    ),
    "Select": lambda g: (
        g.add("Select", np.array([True, False]), g.vector(1, 2), g.vector(3, 4))[0], 2,
    ),
    "Select_scalar": lambda g: (g.add("Select", np.array(True), g.scalar(1), g.scalar(2))[0], 1),
    "SelectV2": lambda g: (
        g.add("SelectV2", np.array([True, False]), g.vector(1, 2), g.vector(3, 4))[0], 2,
    ),
    "SelectV2_scalar": lambda g: (
        g.add("SelectV2", np.array(True), g.scalar(1), g.scalar(2))[0], 1,
    ),
    "Split": lambda g: (g.add("Split", np.int32(0), g.vector(1, 2, 3, 4), num_split=2)[1], 2),
    "SplitV": lambda g: (
        g.add("SplitV", g.vector(1, 2, 3), ints(1, 2), np.int32(0), num_split=2)[1], 2,
    ),
    "StridedSlice": lambda g: (
        g.add("StridedSlice", g.vector(1, 2, 3, 4), ints(1), ints(4), ints(2))[0], 2,
    ),
    "StridedSliceGrad": lambda g: (
        g.add("StridedSliceGrad", ints(2), ints(0), ints(2), ints(1), g.vector(1, 2))[0], 2,
    ),
    "Switch": lambda g: (g.add("Switch", g.vector(1, 2), np.array(True))[1], 2),
    "Transpose": lambda g: (g.add("Transpose", g.matrix(2, 3), ints(1, 0))[0], 6),
    "ConjugateTranspose": lambda g: (
        g.add("ConjugateTranspose", g.matrix(2, 3), ints(1, 0))[0], 6,
    ),
    "BroadcastTo": lambda g: (g.add("BroadcastTo", g.vector(1, 2), ints(2, 2))[0], 4),
    "DepthToSpace": lambda g: (
        g.add("DepthToSpace", g.add("Reshape", g.vector(1, 2, 3, 4), ints(1, 1, 1, 4))[0],
              block_size=2)[0], 4,
    ),
    "SpaceToDepth": lambda g: (
        g.add("SpaceToDepth", g.add("Reshape", g.vector(1, 2, 3, 4), ints(1, 2, 2, 1))[0],
              block_size=2)[0], 4,
    ),
    "DynamicPartition": lambda g: (
        g.add("DynamicPartition", g.vector(1, 2, 3), ints(1, 0, 1), num_partitions=2)[1], 2,
    ),
    "DynamicStitch": lambda g: (
        g.add("DynamicStitch", [ints(2, 0), ints(1)], [g.vector(1, 2), g.vector(3)])[0], 3,
    ),
    "ParallelDynamicStitch": lambda g: (
        g.add("ParallelDynamicStitch", [ints(2, 0), ints(1)], [g.vector(1, 2), g.vector(3)])[0], 3,
    ),
    "Gather": lambda g: (g.add("Gather", g.vector(1, 2, 3), ints(2, 0))[0], 2),
    "GatherNd": lambda g: (
        # GatherNd rejects handles whose element types are known: DynamicPartition drops them.
        g.add("GatherNd", g.add("DynamicPartition", g.vector(1, 2, 3), ints(0, 0, 0),
                                num_partitions=1)[0], np.array([[2], [0]], np.int32))[0], 2,
    ),
    "RandomShuffle": lambda g: (g.add("RandomShuffle", g.vector(4, 4), seed=1)[0], 2),
    "StatelessShuffle": lambda g: (
        g.add("StatelessShuffle", g.vector(4, 4), np.array([1], np.uint64),
              np.array([2, 3], np.uint64), np.int32(1))[0], 2,
    ),
    "RefSwitch": lambda g: (g.add("RefSwitch", g.reference(1, 2), np.array(True))[1], 2),
    "Roll": lambda g: (g.add("Roll", g.vector(1, 2, 3), np.int32(1), np.int32(0))[0], 3),
    "SparseFillEmptyRows": lambda g: (
        g.add("SparseFillEmptyRows", np.array([[0, 1], [2, 0]], np.int64), g.vector(1, 2),
              longs(3, 4), g.scalar(9))[1], 3,
    ),
    "StridedSliceAssign": lambda g: (
        g.add("Identity", g.add("StridedSliceAssign", g.reference(1, 2, 3), ints(1), ints(3),
                                ints(1), g.vector(5, 6))[0])[0], 3,
    ),
    "ScatterUpdate": lambda g: (
        g.add("Identity", g.add("ScatterUpdate", g.reference(1, 2, 3), ints(2, 0),
                                g.vector(5, 6))[0])[0], 3,
    ),
    "NextIteration": lambda g: (looped(g), 2),
    "_SwitchN": lambda g: (
        g.add("_SwitchN", g.vector(1, 2), np.int32(1), num_outs=3, name="branches")[1], 2,
    ),
    "ResourceStridedSliceAssign": lambda g: (sliced_resource(g), 3),
    "ResourceScatterUpdate": lambda g: (updated_resource(g), 3),
    "ResourceGather": lambda g: (
        g.add("ResourceGather", g.resource(1, 2, 3), ints(2, 0), dtype=g.data_type)[0], 2,
    ),
    "ResourceGatherNd": lambda g: (
        g.add("ResourceGatherNd", g.resource(1, 2, 3), np.array([[2], [0]], np.int32),
              dtype=g.data_type)[0], 2,
    ),
    "ReadVariableOp": lambda g: (
        g.add("ReadVariableOp", g.resource(1, 2), dtype=g.data_type)[0], 2,
    ),
}  # fmt: skip


def looped(graph: HandleGraph) -> Output:
    """Three iterations of a loop with handles as a loop variable."""
    merges = []
    for index, value in enumerate((np.int32(0), graph.vector(1, 2))):
        entered = graph.add("Enter", value, frame_name="loop")[0]
        merges += graph.add("Merge", [entered, entered])[:1]
        graph.graph_def.node[-1].input[1] = f"next{index}"
    limit = graph.add("Enter", np.int32(3), frame_name="loop", is_constant=True)[0]
    one = graph.add("Enter", np.int32(1), frame_name="loop", is_constant=True)[0]
    goes_on = graph.add("LoopCond", graph.add("Less", merges[0], limit)[0])[0]
    counter, carried = (graph.add("Switch", merge, goes_on) for merge in merges)
    graph.add("NextIteration", graph.add("Add", counter[1], one)[0], name="next0")
    graph.add("NextIteration", carried[1], name="next1")
    return graph.add("Exit", carried[0])[0]


def sliced_resource(graph: HandleGraph) -> Output:
    """Replace two elements of a resource variable by a slice assignment."""
    held = graph.resource(1, 2, 3)
    graph.add(
        "ResourceStridedSliceAssign", held, ints(1), ints(3), ints(1), graph.vector(5, 6),
        name="change",
    )  # fmt: skip
    return graph.add("ReadVariableOp", held, dtype=graph.data_type, control=["change"])[0]


def updated_resource(graph: HandleGraph) -> Output:
    """Replace two rows of a resource variable by a scatter update."""
    held = graph.resource(1, 2, 3)
    graph.add("ResourceScatterUpdate", held, ints(2, 0), graph.vector(5, 6), name="change")
    return graph.add("ReadVariableOp", held, dtype=graph.data_type, control=["change"])[0]


def moved(op: str, moves: Moves, data_type: DataType) -> Case:
    """A case that reads the numbers of the handles that one of the moves returns."""
    graph = HandleGraph(data_type)
    made = graph.case(op, graph.numbers(*moves[op](graph)))
    return from_producer(20, made) if op.startswith("TensorArray") and "V2" in op else made


# Ops that TensorFlow runs with variants but not with resources.
VARIANT_ONLY = {"DynamicStitch", "ParallelDynamicStitch", "ResourceScatterUpdate"}
# Pairs with a kernel that never succeeds in TensorFlow: tools/record/attempted_types.py tries them.
OUT_OF_REACH = {
    ("ConjugateTranspose", RESOURCE),
    ("ConjugateTranspose", VARIANT),
    ("RandomShuffle", RESOURCE),
    ("ScatterUpdate", RESOURCE),
    ("StatelessShuffle", RESOURCE),
    ("Transpose", RESOURCE),
    ("Transpose", VARIANT),
}

CASES = tuple(
    moved(op, MOVES, each)
    for op in MOVES
    for each in (RESOURCE, VARIANT)
    if (op, each) not in OUT_OF_REACH and not (each is RESOURCE and op in VARIANT_ONLY)
)
