"""Reference variables (version 1)."""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

F32 = DataType.FLOAT


def _steps(op: str, dtype: DataType) -> Case:
    graph = Graph()
    ref = graph.add(op, dtype=dtype, shape=(2,), name="v")[0]
    value = np.array([7, 100]).astype(dtype.numpy)
    assign = graph.add("Assign", ref, value, name="assign")[0]
    graph.add("AssignAdd", ref, value, name="add")
    graph.add("AssignSub", ref, value[::-1], name="sub")
    graph.add("IsVariableInitialized", ref, name="ready")
    graph.add("Identity", ref, name="value")
    graph.add("AssignAdd", assign, value, name="chained")
    fetches = (("ready:0",), ("assign:0",), ("v:0", "value:0"), ("add:0",), ("sub:0",))
    steps = [Step({}, fetch) for fetch in (*fetches, ("value:0", "ready:0"), ("chained:0",))]
    return Case(f"{op}_{dtype.tf_name}", graph.graph_def, tuple(steps))


def _errors() -> Case:
    graph = Graph()
    ref = graph.add("VariableV2", dtype=F32, shape=(2,), name="v")[0]
    value = graph.placeholder(F32, "value")
    for name, validate in (("validate", True), ("assign", False)):
        graph.add("Assign", ref, value, validate_shape=validate, name=name)
    graph.add("AssignAdd", ref, value, name="add")
    graph.add("Identity", ref, name="value_of")
    graph.add("VariableV2", dtype=DataType.INT32, shape=(2,), shared_name="v", name="clash")
    two, three = (np.ones(size, np.float32) for size in (2, 3))
    steps = (
        Step({}, ("value_of:0",)),
        Step({"value:0": two}, ("add:0",)),
        Step({"value:0": two}, ("assign:0",)),
        Step({"value:0": three}, ("validate:0",)),
        Step({"value:0": three}, ("assign:0",)),
        Step({"value:0": two}, ("add:0",)),
        Step({}, ("value_of:0",)),
    )
    return Case("errors", graph.graph_def, steps, message=True)


def _temporary() -> Case:
    graph = Graph()
    ref = graph.add("TemporaryVariable", dtype=F32, shape=(2,), var_name="t", name="t")[0]
    assign = graph.add("Assign", ref, np.array([3, 4], np.float32), name="assign")[0]
    add = graph.add("AssignAdd", assign, np.array([1, 1], np.float32), name="add")[0]
    graph.add("DestroyTemporaryVariable", add, var_name="t", name="value")
    return Case("temporary", graph.graph_def, (Step({}, ("value:0",)),) * 2)


def _temporary_twice() -> Case:
    graph = Graph()
    for node in ("one", "other"):
        graph.add("TemporaryVariable", dtype=F32, shape=(2,), var_name="t", name=node)
    return Case("temporary_twice", graph.graph_def, (Step({}, (), ("one", "other")),))


def _merged() -> Case:
    graph = Graph()
    ref = graph.add("VariableV2", dtype=F32, shape=(2,), name="v")[0]
    graph.add("Assign", ref, np.array([3, 4], np.float32), name="assign")
    branches = graph.add("RefSwitch", ref, graph.placeholder(DataType.BOOL, "is_true"))
    graph.add("Merge", branches, name="merge")
    fetches = ("merge:0", "merge:1")
    runs = [Step({"is_true:0": np.array(is_true)}, fetches) for is_true in (True, False)]
    return Case("merged", graph.graph_def, (Step({}, (), ("assign",)), *runs))


CASES = (
    *(
        _steps("VariableV2", dtype)
        for dtype in (F32, DataType.DOUBLE, DataType.INT32, DataType.INT64, DataType.HALF)
    ),
    _steps("Variable", F32),
    _errors(),
    _temporary(),
    _temporary_twice(),
    _merged(),
)
