"""Kernels that no case of their families runs: old versions, variants, random ones.

If an op may choose between several answers, the case fetches a property common to all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, from_producer

F32, I32, I64, VARIANT = DataType.FLOAT, DataType.INT32, DataType.INT64, DataType.VARIANT
ROWS = np.array([[1, -2, 3], [0, 5, np.inf]], np.float32)
PREFIX = "/tmp/runstep-conformance-merged-"
DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def _strings(*values: str) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = [value.encode() for value in values]
    return array


def _fetched(name: str, graph: Graph, *fetches: str, feeds: Any = None) -> Case:
    return Case(name, graph.graph_def, (Step(feeds or {}, fetches),))


def _identity(op: str) -> Case:
    graph = Graph()
    graph.add(op, graph.placeholder(F32, "x"), name="result")
    return _fetched(op, graph, "result:0", feeds={"x:0": ROWS})


def _reference_identity() -> Case:
    """An assignment through DebugGradientRefIdentity changes the variable."""
    graph = Graph()
    variable = graph.add("VariableV2", shape=(2, 3), dtype=F32, name="v")[0]
    graph.add("Assign", variable, ROWS, name="begin")
    through = graph.add("DebugGradientRefIdentity", variable)[0]
    graph.add("AssignAdd", through, ROWS, name="again")
    graph.add("Identity", variable, name="read")
    steps = (Step({}, (), ("begin",)), Step({}, (), ("again",)), Step({}, ("read:0",)))
    return Case("DebugGradientRefIdentity", graph.graph_def, steps)


def _selected_reference(index: int) -> Case:
    """An assignment through RefSelect changes the variable at the index."""
    graph = Graph()
    variables = [graph.add("VariableV2", shape=(2, 3), dtype=F32, name=n)[0] for n in ("v", "w")]
    begun = [graph.add("Assign", each, ROWS)[0] for each in variables]
    chosen = graph.add("RefSelect", np.array(index, np.int32), begun)[0]
    graph.add("Assign", chosen, ROWS * 2, name="again")
    reads = tuple(graph.add("Identity", each)[0][0] for each in variables)
    steps = (Step({}, ("again:0",)), Step({}, reads))
    name = f"RefSelect_{index}"
    return Case(name, graph.graph_def, steps, message=True)


def _fed() -> Case:
    graph = Graph()
    given = graph.add("PlaceholderV2", dtype=F32, shape=(2, 3), name="given")[0]
    graph.add("Neg", given, name="result")
    return from_producer(
        22, _fetched("PlaceholderV2_fed", graph, "result:0", feeds={"given:0": ROWS})
    )


def _selected(chosen: bool) -> Case:
    """Select with variants: one of two tensor lists."""
    graph = Graph()
    lists = [
        graph.add("TensorListFromTensor", np.zeros(n, np.float32), np.zeros(0, np.int32))[0]
        for n in (2, 3)
    ]
    condition = graph.placeholder(DataType.BOOL, "condition", ())
    one = graph.add("Select", condition, *lists)[0]
    graph.add("TensorListLength", one, name="length")
    feeds = {"condition:0": np.array(chosen)}
    return _fetched(f"Select_variant_{chosen}", graph, "length:0", feeds=feeds)


def _switched(index: int) -> Case:
    """_SwitchN forwards to the output at an index; an index out of range selects the last."""
    graph = Graph()
    where = graph.placeholder(I32, "index", ())
    branches = graph.add("_SwitchN", ROWS, where, name="branches", num_outs=3)
    sums = [
        graph.add("AddV2", branch, np.float32(10 * (i + 1)))[0] for i, branch in enumerate(branches)
    ]
    graph.add("Merge", sums, name="merged")
    feeds = {"index:0": np.array(index, np.int32)}
    return _fetched(f"_SwitchN_{index}", graph, "merged:0", "merged:1", feeds=feeds)


def _sent() -> Case:
    graph = Graph()
    attrs = {
        "tensor_name": "rows", "send_device": DEVICE, "send_device_incarnation": 1,
        "recv_device": DEVICE, "client_terminated": False,
    }  # fmt: skip
    graph.add("_HostSend", ROWS, name="send", **attrs)
    graph.add("_HostRecv", name="receive", tensor_type=F32, **attrs)
    return Case("_HostSend", graph.graph_def, (Step({}, ("receive:0",), ("send",)),))


def _cleared() -> Case:
    graph = Graph()
    attrs = {"shared_name": "m", "dtypes": (F32,)}
    graph.add("OrderedMapStage", np.int64(3), np.zeros(1, np.int32), [ROWS], name="put", **attrs)
    graph.add("OrderedMapSize", name="size", **attrs)
    graph.add("OrderedMapClear", name="clear", **attrs)
    put, size = Step({}, (), ("put",)), Step({}, ("size:0",))
    return Case("OrderedMapClear", graph.graph_def, (put, size, Step({}, (), ("clear",)), size))


def _gradient_array() -> Case:
    """Two writes to the same element of a gradient TensorArray are added."""
    graph = Graph()
    array = graph.add("TensorArrayV2", np.int32(2), dtype=F32, clear_after_read=False)[0]
    flow = graph.add("TensorArrayWriteV2", array, np.int32(0), ROWS, np.float32(0))[0]
    gradient = graph.add("TensorArrayGradV2", array, flow, source="g")[0]
    for _ in range(2):
        flow = graph.add("TensorArrayWriteV2", gradient, np.int32(0), ROWS, flow)[0]
    graph.add("TensorArrayReadV2", gradient, np.int32(0), flow, dtype=F32, name="read")
    return from_producer(20, _fetched("TensorArrayGradV2", graph, "read:0"))


def _chain(distances: list[float]) -> Case:
    """KMC2ChainInitialization over points with the given distances, with a fixed seed."""
    graph = Graph()
    given = graph.placeholder(F32, "distances", (len(distances),))
    graph.add("KMC2ChainInitialization", given, np.int64(7), name="result")
    name = f"KMC2ChainInitialization_{len(distances)}"
    return _fetched(name, graph, "result:0", feeds={"distances:0": np.array(distances, np.float32)})


def _first_centers(wanted: int, points: np.ndarray) -> Case:
    """The sum of the chosen points, which is the same for every choice that is possible."""
    graph = Graph()
    given = graph.placeholder(F32, "points", points.shape)
    chosen = graph.add(
        "KmeansPlusPlusInitialization", given, np.int64(wanted), np.int64(7), np.int64(2),
        name="result",
    )[0]  # fmt: skip
    graph.add("Sum", chosen, np.int32(0), name="sum")
    graph.add("Shape", chosen, name="shape")
    name = f"KmeansPlusPlusInitialization_{wanted}"
    return _fetched(name, graph, "sum:0", "shape:0", feeds={"points:0": points})


def _ordering(name: str, matrix: np.ndarray) -> Case:
    """The sorted ordering: every row occurs once."""
    graph = Graph()
    sparse = graph.add("DenseToCSRSparseMatrix", matrix, np.argwhere(matrix))[0]
    order = graph.add("SparseMatrixOrderingAMD", sparse)[0]
    ranks = graph.add("TopKV2", order, np.int32(matrix.shape[-1]), name="ranks")
    return _fetched(f"SparseMatrixOrderingAMD_{name}", graph, ranks[0][0])


def _merged() -> Case:
    """Merge two checkpoints into one, and restore from it; the two folders are kept."""
    graph = Graph()
    parts = [f"{PREFIX}{part}" for part in ("one", "two")]
    for part in parts:
        prefix = np.array(part.encode(), object)
        graph.add("SaveV2", prefix, _strings(part[-3:]), _strings(""), [ROWS], name=part[-3:])
    whole = np.array(f"{PREFIX}whole".encode(), object)
    graph.add("MergeV2Checkpoints", _strings(*parts), whole, delete_old_dirs=False, name="merge")
    graph.add(
        "RestoreV2", whole, _strings("two", "one"), _strings("", ""), dtypes=(F32, F32),
        name="restore",
    )  # fmt: skip
    steps = (
        Step({}, (), ("one", "two")), Step({}, (), ("merge",)),
        Step({}, ("restore:0", "restore:1")),
    )  # fmt: skip
    return Case("MergeV2Checkpoints", graph.graph_def, steps)


_ARROW = np.eye(5, dtype=np.float32) * 9
_ARROW[0] = _ARROW[:, 0] = 1
CASES = (
    _identity("DebugGradientIdentity"),
    _identity("DebugIdentityV2"),
    _reference_identity(),
    _fed(),
    *(_selected_reference(index) for index in (0, 1, 2, -1)),
    *(_selected(chosen) for chosen in (True, False)),
    *(_switched(index) for index in (0, 2, 5, -1)),
    _sent(),
    _cleared(),
    _gradient_array(),
    _chain([0, 0, 3, 0, 0]),
    _chain([2]),
    _chain([0] * 4),
    _chain([1, 2, 1.5, 0.5, 0.25, 3, 2.5, 2, 1]),
    _chain([4, 3, 2, 1, 0.5, 0.75, 0.5, 0.25, 1, 2, 1.5]),
    _first_centers(3, np.array([[1, 2], [3, 4], [8, 0]], np.float32)),
    _first_centers(1, np.full((4, 2), 5, np.float32)),
    _ordering("arrow", _ARROW),
    _ordering("batch", np.stack([_ARROW, _ARROW + np.diag([1, 1, 1], 2).astype(np.float32)])),
    _merged(),
)
