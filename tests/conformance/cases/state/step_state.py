"""Stacks, mutexes and session tensors."""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

F32 = DataType.FLOAT


def _stack(version: str) -> Case:
    g = Graph()
    size = [np.int32(2)] if version else []
    handle = g.add(f"Stack{version}", *size, elem_type=F32, stack_name="s", name="stack")[0]
    g.add(f"StackPush{version}", handle, np.float32(1), name="one")
    g.add(f"StackPush{version}", handle, np.float32(2), name="two", control=["one"])
    g.add(f"StackPop{version}", handle, elem_type=F32, name="top", control=["two"])
    g.add(f"StackPop{version}", handle, elem_type=F32, name="below", control=["top"])
    g.add(f"StackPop{version}", handle, elem_type=F32, name="none", control=["below"])
    g.add(f"StackPop{version}", handle, elem_type=DataType.INT32, name="wrong", control=["two"])
    g.add(f"StackPush{version}", handle, np.float32(3), name="three", control=["two"])
    g.add(f"StackClose{version}", handle, name="close", control=["two"])
    g.add(f"StackPop{version}", handle, elem_type=F32, name="closed", control=["close"])
    fetches = ("one", "top", "below", "none", "wrong", "closed") + (("three",) if version else ())
    return Case(f"stack{version}", g.graph_def, tuple(Step({}, (f"{n}:0",)) for n in fetches))


def _mutex() -> Case:
    """Two critical sections in one step, which exclude each other."""
    g = Graph()
    mutex = g.add("MutexV2", shared_name="m", name="mutex")[0]
    total = g.add("VarHandleOp", dtype=F32, shape=(), shared_name="t")[0]
    g.add("AssignVariableOp", total, np.float32(0), dtype=F32, name="init")
    for name in ("a", "b"):
        lock = g.add("MutexLock", mutex, name=f"lock_{name}")[0]
        locked = [f"lock_{name}"]
        g.add("AssignAddVariableOp", total, np.float32(1), dtype=F32, name=name, control=locked)
        g.add("ConsumeMutexLock", lock, name=f"unlock_{name}", control=[name])
    g.add("ReadVariableOp", total, dtype=F32, name="read")
    both = Step({}, (), ("unlock_a", "unlock_b"))
    return Case("mutex", g.graph_def, (Step({}, (), ("init",)), both, both, Step({}, ("read:0",))))


def _session_tensor() -> Case:
    """An unknown session handle (valid handles are different in every session)."""
    g = Graph()
    handle = g.placeholder(DataType.STRING, "handle")
    g.add("GetSessionTensor", handle, dtype=F32, name="value")
    g.add("DeleteSessionTensor", handle, name="delete")
    feeds = {"handle:0": np.array(b"nobody", object)}
    steps = (Step(feeds, ("value:0",)), Step(feeds, (), ("delete",)))
    return Case("session_tensor", g.graph_def, steps)


CASES = (_stack("V2"), _mutex(), _session_tensor())
