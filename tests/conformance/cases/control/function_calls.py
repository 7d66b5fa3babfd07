"""Function calls, conditionals and loops over functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step
from tests.node_builder import build_node_def

F32, I32, BOOL = DataType.FLOAT, DataType.INT32, DataType.BOOL
LIMIT = np.float32(20)


def function(
    graph: Graph, name: str, types: Sequence[DataType], *ops: tuple[Any, ...]
) -> NameAttrList:
    """Add a function of the inputs `x0`, `x1`, …; each op `(op, type, *inputs)` gives a result."""
    definition = pb.FunctionDef()
    definition.signature.name = name
    for index, data_type in enumerate(types):
        definition.signature.input_arg.add(name=f"x{index}", type=int(data_type))
    for index, (op, result, *inputs) in enumerate(ops):
        arguments = [(f"x{each}", types[each]) for each in inputs]
        definition.node_def.append(build_node_def(op, f"n{index}", arguments, {}))
        definition.signature.output_arg.add(name=f"y{index}", type=int(result))
        definition.ret[f"y{index}"] = f"n{index}:{OUTPUT_NAMES.get(op, 'z')}:0"
    graph.graph_def.library.function.append(definition)
    return NameAttrList(name)


OUTPUT_NAMES = {"Identity": "output", "Neg": "y", "Square": "y"}


def call(op: str) -> Case:
    """A function call that returns x · y and −x."""
    g = Graph()
    body = function(g, "body", (F32, F32), ("Mul", F32, 0, 1), ("Neg", F32, 0))
    x, y = g.placeholder(F32, "x"), g.placeholder(F32, "y")
    g.add(op, [x, y], f=body, Tout=(F32, F32), name="result")
    feeds = {"x:0": np.array([1.5, -2], np.float32), "y:0": np.float32(3)}
    return Case(op, g.graph_def, (Step(feeds, ("result:0", "result:1")),))


def branches(op: str) -> Case:
    """−x or x², selected by a bool or an index; an index out of range selects the last branch."""
    g = Graph()
    first = function(g, "first", (F32,), ("Neg", F32, 0))
    second = function(g, "second", (F32,), ("Square", F32, 0))
    x = g.placeholder(F32, "x")
    values: list[Any]
    if op.endswith("If"):
        by, values = g.placeholder(BOOL, "by"), [np.bool_(True), np.bool_(False)]
        g.add(op, by, [x], then_branch=first, else_branch=second, Tout=(F32,), name="result")
    else:
        by, values = g.placeholder(I32, "by"), [np.int32(each) for each in (0, 1, 7, -1)]
        g.add(op, by, [x], branches=(first, second), Tout=(F32,), name="result")
    feeds = {"x:0": np.array([1.5, -2], np.float32)}
    steps = tuple(Step({**feeds, "by:0": np.asarray(value)}, ("result:0",)) for value in values)
    return Case(op, g.graph_def, steps)


def loop(op: str) -> Case:
    """A loop that doubles x while it is below the limit."""
    g = Graph()
    types = (F32, F32, F32)
    condition = function(g, "condition", types, ("Less", BOOL, 0, 2))
    body = function(
        g, "body", types, ("Mul", F32, 0, 1), ("Identity", F32, 1), ("Identity", F32, 2)
    )
    inputs = [g.placeholder(F32, "x"), np.float32(2), LIMIT]
    g.add(op, inputs, cond=condition, body=body, name="result")
    steps = tuple(Step({"x:0": np.float32(each)}, ("result:0", "result:2")) for each in (1, 50))
    return Case(op, g.graph_def, steps)


def counted() -> Case:
    """A For loop that adds start, start + delta, … up to the limit to the input."""
    g = Graph()
    definition = pb.FunctionDef()
    definition.signature.name = "body"
    for name, data_type in (("i", I32), ("x", F32)):
        definition.signature.input_arg.add(name=name, type=int(data_type))
    definition.signature.output_arg.add(name="y", type=int(F32))
    cast = build_node_def("Cast", "cast", [("i", I32)], {"DstT": F32})
    add = build_node_def("AddV2", "add", [("x", F32), ("cast:y:0", F32)], {})
    definition.node_def.extend([cast, add])
    definition.ret["y"] = "add:z:0"
    g.graph_def.library.function.append(definition)
    start, limit, delta = (g.placeholder(I32, name) for name in ("start", "limit", "delta"))
    g.add("For", start, limit, delta, [np.float32(0.5)], body=NameAttrList("body"), name="result")
    steps = tuple(
        Step(
            {f"{name}:0": np.int32(each) for name, each in zip(INPUTS, values, strict=True)},
            ("result:0",),
        )
        for values in ((0, 5, 1), (5, -1, -2), (3, 3, 1), (0, 5, 0))
    )
    return Case("For", g.graph_def, steps)


INPUTS = ("start", "limit", "delta")


def locked() -> Case:
    """A long loop whose body takes an uncontended lock and releases it."""
    g = Graph()
    types = (I32, I32, I32, DataType.RESOURCE)
    condition = function(g, "condition", types, ("Less", BOOL, 0, 1))
    kept = [("Identity", data_type, index) for index, data_type in enumerate(types)]
    body = function(g, "body", types, ("AddV2", I32, 0, 2), *kept[1:])
    definition = g.graph_def.library.function[-1]
    lock = build_node_def("MutexLock", "lock", [("x3", DataType.RESOURCE)], {})
    given_back = build_node_def(
        "ConsumeMutexLock", "given_back", [("lock:mutex_lock:0", DataType.VARIANT)], {}
    )
    definition.node_def.extend([lock, given_back])
    definition.control_ret["given_back"] = "given_back"
    definition.signature.control_output.append("given_back")
    definition.signature.is_stateful = True
    mutex = g.add("MutexV2", shared_name="m", name="mutex")[0]
    inputs = [g.placeholder(I32, "x"), np.int32(1000), np.int32(1), mutex]
    g.add("While", inputs, cond=condition, body=body, name="result")
    steps = tuple(Step({"x:0": np.int32(each)}, ("result:0",)) for each in (0, 1001))
    return Case("While_locked", g.graph_def, steps)


def refused_loops() -> list[Case]:
    """Loops whose functions return too many results, and For with invalid ranges."""
    cases = []
    for name, results in (("condition", 2), ("body", 3)):
        g = Graph()
        over = ("Greater", BOOL, 0, 1)
        cond = function(g, "cond", (F32, F32), *[over] * (results if name == "condition" else 1))
        kept = [("Identity", F32, 0)] * (results if name == "body" else 2)
        body = function(g, "body", (F32, F32), *kept)
        x, y = g.placeholder(F32, "x"), g.placeholder(F32, "y")
        g.add("While", [x, y], cond=cond, body=body, name="result")
        step = Step({"x:0": np.float32(2), "y:0": np.float32(1)}, ("result:0",))
        cases.append(Case(f"While_{name}", g.graph_def, (step,)))
    g = Graph()
    body = function(g, "body", (I32, F32), ("Identity", F32, 1))
    sizes = [g.placeholder(I32, name) for name in ("start", "limit", "delta")]
    g.add("For", *sizes, [np.float32(0.5)], body=body, name="result")
    steps = tuple(
        Step(
            {f"{name}:0": np.int32(size) for name, size in zip(RANGE, given, strict=True)},
            ("result:0",),
        )
        for given in (
            ([0], 3, 1),
            (0, [3], 1),
            (0, 3, [1]),
            (0, 3, -1),
            (3, 0, 1),
            (0, 3, 0),
            (3, 3, 0),
        )
    )
    return [*cases, Case("For_refused", g.graph_def, steps, message=True)]


RANGE = ("start", "limit", "delta")
CASES = (
    *(call(op) for op in ("PartitionedCall", "StatefulPartitionedCall")),
    *(branches(op) for op in ("If", "StatelessIf", "Case", "StatelessCase")),
    *(loop(op) for op in ("While", "StatelessWhile")),
    *refused_loops(),
    counted(),
    locked(),
)
