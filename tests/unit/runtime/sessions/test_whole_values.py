"""Steps that read a variable beside steps that update it: values are whole and never change."""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from runtime.framework.dtypes import DataType
from runtime.sessions.direct.direct_session import DirectSession
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import direct_session

FLOAT, INT32 = DataType.FLOAT, DataType.INT32
ROWS, COLUMNS = 256, 1024  # 1 MB: ufuncs let other threads run meanwhile
ROUNDS = 30


@pytest.fixture(autouse=True)
def small_switch_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@dataclasses.dataclass(frozen=True)
class Update:
    """The op that changes all numbers of the variable `v` alike, and the one that reads it."""

    op: str
    inputs: tuple[str, ...] = ("ones",)
    read: str = ""

    @property
    def is_resource(self) -> bool:
        return self.op.startswith("Resource") or self.op.endswith("VariableOp")


UPDATES = [
    Update("AssignAddVariableOp"),
    Update("ResourceScatterAdd", ("rows", "ones")),
    Update("ResourceStridedSliceAssign", ("begin", "end", "strides", "next")),
    Update("ResourceApplyGradientDescent", ("rate", "ones")),
    Update("ResourceApplyMomentum", ("slot", "minus", "ones", "zero")),
    Update("ResourceScatterAdd", ("rows", "ones"), "ResourceGather"),
    Update("AssignAdd"),
    Update("ScatterAdd", ("rows", "ones")),
    Update("ApplyGradientDescent", ("rate", "ones")),
    Update("ScatterAdd", ("rows", "ones"), "Gather"),
]


def session_of(update: Update) -> DirectSession:
    """A session with the nodes `update` and `read`; `v` and `slot` are zeros."""
    graph = Graph()
    values = {
        "ones": np.ones((ROWS, COLUMNS), np.float32),
        "zeros": np.zeros((ROWS, COLUMNS), np.float32),
        "rows": np.arange(ROWS, dtype=np.int32),
        "begin": np.zeros(1, np.int32),
        "end": np.array([ROWS], np.int32),
        "strides": np.ones(1, np.int32),
        "rate": np.float32(-1),
        "minus": np.float32(-1),
        "zero": np.float32(0),
    }
    tensors = {
        name: graph.add("Const", name=name, dtype=value.dtype.name, value=value)[0]
        for name, value in values.items()
    }
    tensors["next"] = graph.placeholder("float32", "next")
    for name in ("v", "slot"):
        shape = (ROWS, COLUMNS)
        if update.is_resource:
            handle = graph.add("VarHandleOp", name=name, dtype=FLOAT, shape=shape, shared_name=name)
            graph.add(
                "AssignVariableOp", handle[0], tensors["zeros"], name=f"{name}_init", dtype=FLOAT
            )
        else:
            handle = graph.add("VariableV2", name=name, dtype=FLOAT, shape=shape)
            graph.add("Assign", handle[0], tensors["zeros"], name=f"{name}_init", T=FLOAT)
        tensors[name] = handle[0]
    graph.add(update.op, *(tensors[name] for name in ("v", *update.inputs)), name="update")
    if update.read == "ResourceGather":
        graph.add("ResourceGather", tensors["v"], tensors["rows"], name="read", dtype=FLOAT)
    elif update.read:
        graph.add(update.read, tensors["v"], tensors["rows"], name="read")
    elif update.is_resource:
        graph.add("ReadVariableOp", tensors["v"], name="read", dtype=FLOAT)
    else:
        graph.add("Identity", tensors["v"], name="read")
    session = direct_session(graph.graph_def)
    session.run({}, [], ["v_init", "slot_init"])
    return session


@pytest.mark.parametrize("update", UPDATES, ids=lambda update: f"{update.op}-{update.read}")
def test_values_are_whole_and_stay(update: Update) -> None:
    session = session_of(update)
    begin = threading.Barrier(2)

    def write() -> None:
        begin.wait()
        for number in range(1, 2 * ROUNDS + 1):
            feeds = {"next": np.full((ROWS, COLUMNS), number, np.float32)}
            session.run(feeds if "next" in update.inputs else {}, [], ["update"])

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    begin.wait()
    values, seen = [], []
    for _ in range(ROUNDS):
        (value,) = session.run({}, ["read"])
        values.append(value)
        seen.append((value.min(), value.max()))
    writer.join()
    torn = sum(low != high for low, high in seen)
    changed = sum(
        (value.min(), value.max()) != before for value, before in zip(values, seen, strict=True)
    )
    assert (torn, changed) == (0, 0)
    assert seen == sorted(seen)
    if update.op != "ResourceApplyMomentum":
        assert np.all(session.run({}, ["read"])[0] == 2 * ROUNDS)


def counter_graph(op: str) -> Graph:
    """The node `next` gives the state of the variable `v`, which goes on, and changes it."""
    graph = Graph()
    if op == "CountUpTo":
        handle = graph.add("VariableV2", name="v", dtype=DataType.INT64, shape=())[0]
        graph.add("Assign", handle, np.int64(0), name="init", T=DataType.INT64)
        graph.add("CountUpTo", handle, name="next", limit=10**9)
        return graph
    start = np.zeros(3, np.int64) if op == "RngReadAndSkip" else np.int64(0)
    handle = graph.add(
        "VarHandleOp", name="v", dtype=DataType.INT64, shape=start.shape, shared_name="v"
    )[0]
    graph.add("AssignVariableOp", handle, start, name="init", dtype=DataType.INT64)
    if op == "RngReadAndSkip":
        graph.add("RngReadAndSkip", handle, np.int32(1), np.uint64(1), name="next")
    else:
        graph.add("ResourceCountUpTo", handle, name="next", limit=10**9, T=DataType.INT64)
    return graph


@pytest.mark.parametrize("op", ["CountUpTo", "ResourceCountUpTo", "RngReadAndSkip"])
def test_each_state_of_a_counter_is_given_once(op: str) -> None:
    session = direct_session(counter_graph(op).graph_def)
    session.run({}, [], ["init"])
    given: list[int] = []

    def count() -> None:
        given.extend(int(np.ravel(session.run({}, ["next"])[0])[0]) for _ in range(3 * ROUNDS))

    threads = [threading.Thread(target=count, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(given)) == len(given) == 9 * ROUNDS
