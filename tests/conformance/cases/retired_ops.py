"""Ops that new graphs do not use: CountUpTo, RefSwitch, version 1 stacks, closed TensorArrays."""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, from_producer

F32 = DataType.FLOAT
COUNTED = (np.int32, np.int64)


def count_up(dtype: type) -> Case:
    """CountUpTo gives 2 and then fails: the limit is 3."""
    g = Graph()
    data_type = DataType.INT32 if dtype is np.int32 else DataType.INT64
    handle = g.add("VariableV2", shape=(), dtype=data_type, name="v")[0]
    g.add("Assign", handle, dtype(2), name="init")
    g.add("CountUpTo", handle, limit=3, name="count")
    steps = (Step({}, (), ("init",)), Step({}, ("count:0",)), Step({}, ("count:0",)))
    return Case(f"CountUpTo_{np.dtype(dtype)}", g.graph_def, steps, message=True)


def resource_count_up(dtype: type) -> Case:
    """ResourceCountUpTo gives 2 and then fails: the limit is 3."""
    g = Graph()
    data_type = DataType.INT32 if dtype is np.int32 else DataType.INT64
    handle = g.add("VarHandleOp", shape=(), dtype=data_type, shared_name="v", name="v")[0]
    g.add("AssignVariableOp", handle, dtype(2), name="init")
    g.add("ResourceCountUpTo", handle, T=data_type, limit=3, name="count")
    steps = (Step({}, (), ("init",)), Step({}, ("count:0",)), Step({}, ("count:0",)))
    return Case(f"ResourceCountUpTo_{np.dtype(dtype)}", g.graph_def, steps, message=True)


def ref_switch() -> Case:
    """RefSwitch forwards a variable to one of two readers."""
    g = Graph()
    handle = g.add("VariableV2", shape=(2,), dtype=F32, name="v")[0]
    g.add("Assign", handle, np.array([1, 2], np.float32), name="init")
    by = g.placeholder(DataType.BOOL, "by")
    no, yes = g.add("RefSwitch", handle, by, name="switch")
    g.add("Identity", g.add("Neg", no)[0], name="no")
    g.add("Identity", g.add("Square", yes)[0], name="yes")
    steps = (
        Step({}, (), ("init",)),
        Step({"by:0": np.bool_(False)}, ("no:0",)),
        Step({"by:0": np.bool_(True)}, ("yes:0",)),
    )
    return Case("RefSwitch", g.graph_def, steps)


def old_stack() -> Case:
    """Two values are popped in reverse order; then the stack is closed."""
    g = Graph()
    handle = g.add("Stack", elem_type=F32, stack_name="s", name="stack")[0]
    g.add("StackPush", handle, np.float32(1), name="one")
    g.add("StackPush", handle, np.float32(2), name="two", control=["one"])
    g.add("StackPop", handle, elem_type=F32, name="top", control=["two"])
    g.add("StackPop", handle, elem_type=F32, name="below", control=["top"])
    g.add("StackClose", handle, name="close", control=["below"])
    g.add("Identity", ("below:0", F32), name="done", control=["close"])
    return Case("Stack", g.graph_def, (Step({}, ("top:0", "done:0")),))


def closed_stack() -> Case:
    """StackCloseV2 after a value was popped."""
    g = Graph()
    handle = g.add("StackV2", np.int32(2), elem_type=F32, stack_name="s", name="stack")[0]
    g.add("StackPushV2", handle, np.float32(1), name="one")
    g.add("StackPopV2", handle, elem_type=F32, name="top", control=["one"])
    g.add("StackCloseV2", handle, name="close", control=["top"])
    g.add("Identity", ("top:0", F32), name="done", control=["close"])
    return Case("StackCloseV2", g.graph_def, (Step({}, ("done:0",)),))


def closed_tensor_array(version: str) -> Case:
    """A TensorArray is closed after it was read."""
    g = Graph()
    handle, *flow = g.add(f"TensorArray{version}", np.int32(1), dtype=F32, name="array")
    flow_in = flow[0] if flow else np.float32(0)
    written = g.add(f"TensorArrayWrite{version}", handle, np.int32(0), np.float32(7), flow_in)[0]
    read = g.add(f"TensorArrayRead{version}", handle, np.int32(0), written, dtype=F32, name="read")
    g.add(f"TensorArrayClose{version}", handle, name="close", control=["read"])
    g.add("Identity", read[0], name="done", control=["close"])
    return Case(f"TensorArrayClose{version}", g.graph_def, (Step({}, ("done:0",)),))


CASES = (
    *(count_up(t) for t in COUNTED),
    *(resource_count_up(t) for t in COUNTED),
    ref_switch(),
    old_stack(),
    closed_stack(),
    from_producer(25, closed_tensor_array("V2")),
    closed_tensor_array("V3"),
)
