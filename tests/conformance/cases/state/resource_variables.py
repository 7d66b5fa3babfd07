"""Resource variables: several steps in one session per case."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

F32 = DataType.FLOAT


def _of_dtype(dtype: DataType) -> Case:
    """Assign, add, subtract and read; a value read before an update must not change."""
    graph = Graph()
    handle = graph.add("VarHandleOp", dtype=dtype, shape=(2,), shared_name="x", name="x")[0]
    value = np.array([7, 100]).astype(dtype.numpy)
    graph.add("AssignVariableOp", handle, value, dtype=dtype, name="assign")
    graph.add("AssignAddVariableOp", handle, value, dtype=dtype, name="add")
    graph.add("AssignSubVariableOp", handle, value[::-1], dtype=dtype, name="sub")
    graph.add("ReadVariableOp", handle, dtype=dtype, name="read")
    graph.add("VarIsInitializedOp", handle, name="ready")
    graph.add("VariableShape", handle, out_type=DataType.INT64, name="shape")
    graph.add("DisableCopyOnRead", handle, name="disable")
    read = ("read:0", "ready:0", "shape:0")
    steps = (
        Step({}, ("ready:0",)),
        Step({}, (), ("assign",)),
        Step({}, read),
        Step({}, (), ("add", "disable")),
        Step({}, read),
        Step({}, (), ("sub",)),
        Step({}, read),
    )
    return Case(f"steps_{dtype.tf_name}", graph.graph_def, steps)


def _errors() -> Case:
    """Error messages: TensorFlow's are expected word for word."""
    graph = Graph()
    handles: dict[str, Any] = {
        name: graph.add("VarHandleOp", name=name, **attrs)[0]
        for name, attrs in (
            ("x", {"dtype": F32, "shape": None, "shared_name": "x"}),
            ("as_int", {"dtype": DataType.INT32, "shape": None, "shared_name": "x"}),
            ("other", {"dtype": F32, "shape": None, "shared_name": "o", "container": "C"}),
        )
    }
    value = graph.placeholder(F32, "value")
    read = graph.add("ReadVariableOp", handles["x"], dtype=F32, name="read")
    graph.add("ReadVariableOp", handles["other"], dtype=F32, name="read_other")
    graph.add("ReadVariableOp", handles["as_int"], dtype=DataType.INT32, name="read_int")
    graph.add("AssignVariableOp", handles["x"], value, dtype=F32, name="assign")
    graph.add(
        "AssignVariableOp", handles["x"], value, dtype=F32, validate_shape=True, name="validate"
    )
    graph.add("AssignVariableOp", handles["as_int"], 1, dtype=DataType.INT32, name="assign_int")
    graph.add("AssignAddVariableOp", handles["x"], value, dtype=F32, name="add")
    graph.add("AssignAddVariableOp", handles["as_int"], 1, dtype=DataType.INT32, name="add_int")
    graph.add("VariableShape", handles["x"], out_type=DataType.INT32, name="shape")
    for name, ignore in (("destroy", False), ("destroy_quietly", True)):
        graph.add("DestroyResourceOp", handles["x"], ignore_lookup_error=ignore, name=name)
    one, two, three = (np.zeros(size, np.float32) for size in (1, 2, 3))
    steps = (
        Step({}, (), ("destroy_quietly",)),
        Step({"value:0": two}, (), ("assign",)),
        Step({}, (), ("destroy",)),
        Step({}, (read[0][0],)),
        Step({}, ("read_other:0",)),
        Step({"value:0": two}, (), ("add",)),
        Step({}, ("shape:0",)),
        Step({}, (), ("destroy",)),
        Step({"value:0": two}, (), ("assign",)),
        Step({}, ("shape:0",)),
        Step({"value:0": three}, (), ("validate",)),
        Step({"value:0": one}, (), ("add",)),
        Step({}, ("read_int:0",)),
        Step({}, (), ("assign_int",)),
        Step({}, (), ("add_int",)),
        Step({"value:0": three}, (), ("assign",)),
        Step({}, ("read:0", "shape:0")),
    )
    return Case("errors", graph.graph_def, steps, message=True)


def _string() -> Case:
    graph = Graph()
    handle = graph.add("VarHandleOp", dtype=DataType.STRING, shape=None, name="x")[0]
    value = graph.placeholder(DataType.STRING, "value")
    graph.add("AssignVariableOp", handle, value, dtype=DataType.STRING, name="assign")
    graph.add("ReadVariableOp", handle, dtype=DataType.STRING, name="read")
    texts = (np.array(b"one", object), np.array([b"a", b"bc"], object))
    steps = [
        step
        for text in texts
        for step in (Step({"value:0": text}, (), ("assign",)), Step({}, ("read:0",)))
    ]
    return Case("string", graph.graph_def, tuple(steps))


CASES = (
    *map(
        _of_dtype,
        (
            DataType.FLOAT, DataType.DOUBLE, DataType.HALF, DataType.BFLOAT16, DataType.INT8,
            DataType.INT32, DataType.INT64, DataType.UINT8, DataType.COMPLEX64,
        ),
    ),
    _errors(),
    _string(),
)  # fmt: skip
