"""Random graphs give equal values on every executor, optimised or not; damaged ones an OpError."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import protos as pb
from runtime.api import (
    Code,
    OpError,
    SessionOptions,
    new_session,
    tensor_from_proto,
    tensor_to_proto,
)
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import g1, queue_graph
from tests.unit.runtime.sessions.test_state import variable_graph
from tests.unit.runtime.sessions.test_step_errors import loop_graph, switch_graph

UNARY = ("Neg", "Abs", "Square", "Identity", "StopGradient")
BINARY = ("AddV2", "Sub", "Mul", "Maximum", "Minimum")
SHAPES = ((), (1,), (3,), (2, 1), (2, 3))  # any two are broadcastable
DTYPES = ("float32", "int32")
VALUES = (-2, -1, 0, 1, 2, 3)  # small, so that simplifications apply often


@dataclasses.dataclass(frozen=True)
class Plan:
    """A graph, the values of its placeholders, and the names of all other nodes."""

    graph: pb.GraphDef
    feeds: dict[str, np.ndarray]
    nodes: list[str]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Acyclic graphs of one element type with control edges."""
    dtype = draw(st.sampled_from(DTYPES))
    value = st.sampled_from(SHAPES).flatmap(
        lambda shape: hnp.arrays(dtype, shape, elements=st.sampled_from(VALUES))
    )
    graph, feeds = Graph(), {}
    outputs: list[tuple[str, DataType]] = []
    for index in range(draw(st.integers(1, 3))):
        outputs.append(graph.placeholder(dtype, f"x{index}"))
        feeds[f"x{index}"] = draw(value)
    nodes: list[str] = []
    for index in range(draw(st.integers(1, 15))):
        op = draw(st.sampled_from((*UNARY, *BINARY, *BINARY, "Const")))
        count = 0 if op == "Const" else 1 if op in UNARY else 2
        inputs = [draw(st.sampled_from(outputs)) for _ in range(count)]
        control = [draw(st.sampled_from(nodes))] if nodes and draw(st.integers(0, 4)) == 0 else []
        attrs: dict[str, Any] = {"dtype": dtype, "value": draw(value)} if op == "Const" else {}
        name = f"n{index}"
        outputs += graph.add(op, *inputs, name=name, control=control, **attrs)
        nodes.append(name)
    return Plan(graph.graph_def, feeds, nodes)


EXECUTORS = ("DEFAULT", "DATAFLOW", "SINGLE_THREADED_EXECUTOR")
LEVELS = (pb.OptimizerOptions.L0, pb.OptimizerOptions.L1)


def configs() -> Iterator[pb.ConfigProto]:
    """A configuration for every executor, optimised and not."""
    for executor in EXECUTORS:
        for level in LEVELS:
            config = pb.ConfigProto()
            config.experimental.executor_type = executor
            config.graph_options.optimizer_options.opt_level = level
            yield config


def values(
    plan: Plan, config: pb.ConfigProto, feeds: dict[str, np.ndarray], fetches: list[str]
) -> list[np.ndarray]:
    session = new_session(SessionOptions(config=config))
    session.create(plan.graph)
    found = session.run(feeds, fetches)
    again = session.run(feeds, fetches)  # a step plan is generated code from the second run on
    session.close()
    for first, second in zip(found, again, strict=True):
        np.testing.assert_array_equal(first, second)
    return [np.asarray(each) for each in found]


@settings(max_examples=40, deadline=None)
@given(plan=plans(), data=st.data())
def test_every_executor_gives_the_same_values(plan: Plan, data: st.DataObject) -> None:
    fetches = data.draw(st.lists(st.sampled_from(plan.nodes), min_size=1, max_size=4))
    feeds = dict(plan.feeds)
    others = sorted(set(plan.nodes) - set(fetches))
    if others and data.draw(st.booleans()):  # feed an inner node: its inputs are pruned
        fed = data.draw(st.sampled_from(others))
        feeds[fed] = next(iter(feeds.values()))
    expected: list[np.ndarray] | None = None
    for config in configs():
        found = values(plan, config, feeds, fetches)
        if expected is None:
            expected = found
        for got, want in zip(found, expected, strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_array_equal(got, want)


VALID = {
    "arithmetic": (g1(), {"x": 3.0}, ["n"]),
    "queue": (queue_graph(), {}, ["size"]),
    "variable": (variable_graph(), {"value": 1.0}, ["is_initialized"]),
    "branch": (switch_graph(), {"value": 1.0, "side": True}, ["merge:0"]),
    "loop": (loop_graph(), {"start": 1}, ["exit"]),
}


@st.composite
def flipped(draw: st.DrawFn, valid: pb.GraphDef) -> pb.GraphDef:
    """`valid` with some bytes replaced; unchanged if the result does not parse."""
    content = bytearray(valid.SerializeToString(deterministic=True))
    for _ in range(draw(st.integers(1, 3))):
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    try:
        return pb.GraphDef.FromString(bytes(content))
    except DecodeError:
        return valid


NAMES = st.sampled_from(("x", "m", "q", "rv", "value", "switch:1", "^loop", "next", "", "n:7"))
OPS = st.sampled_from(
    ("Neg", "Mul", "Merge", "Enter", "Exit", "NextIteration", "Switch", "QueueDequeueV2",
     "ReadVariableOp", "VarHandleOp", "Placeholder", "NoOp", "If", "While", "Nowhere")
)  # fmt: skip


@st.composite
def mangled(draw: st.DrawFn, valid: pb.GraphDef) -> pb.GraphDef:
    """`valid` with changed ops, inputs, names, devices and attributes in some nodes."""
    graph = pb.GraphDef()
    graph.CopyFrom(valid)
    for _ in range(draw(st.integers(1, 4))):
        node = graph.node[draw(st.integers(0, len(graph.node) - 1))]
        match draw(st.sampled_from(("op", "name", "device", "input", "more", "attr", "type"))):
            case "op":
                node.op = draw(OPS)
            case "name":
                node.name = draw(NAMES)
            case "device":
                node.device = draw(st.sampled_from(("/cpu:0", "/device:GPU:0", "nonsense")))
            case "input" if node.input:
                node.input[draw(st.integers(0, len(node.input) - 1))] = draw(NAMES)
            case "more":
                node.input.append(draw(NAMES))
            case "attr" if node.attr:
                del node.attr[draw(st.sampled_from(sorted(node.attr)))]
            case "type":
                node.attr[draw(st.sampled_from(("T", "dtype", "N", "f")))].type = draw(
                    st.sampled_from(DataType)
                )
    return graph


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("damage", [flipped, mangled])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_damaged_graph_gives_values_or_an_op_error(
    damage: Callable[[pb.GraphDef], st.SearchStrategy[pb.GraphDef]],
    name: str,
    data: st.DataObject,
) -> None:
    valid, feeds, fetches = VALID[name]
    graph = data.draw(damage(valid))
    config = pb.ConfigProto(operation_timeout_in_ms=2000)
    session = new_session(SessionOptions(config=config, max_graph_nodes=100))
    try:
        session.create(graph)
        session.run(feeds, fetches)
    except OpError as error:
        assert error.message
        # A damaged loop may set a fetch twice, which is INTERNAL in TensorFlow's call_frame.cc.
        is_given_twice = error.message.endswith("has already been set.")
        assert is_given_twice or error.code is not Code.INTERNAL, error
    finally:
        session.close()


NUMERIC = [t for t in DataType if t and t.numpy.isbuiltin == 1 and t.numpy.kind != "O"]


@settings(max_examples=100, deadline=None)
@given(data=st.data(), data_type=st.sampled_from(NUMERIC))
def test_tensors_survive_their_message(data: st.DataObject, data_type: DataType) -> None:
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    array = data.draw(hnp.arrays(data_type.numpy, shapes))
    content = tensor_to_proto(array).SerializeToString()
    back = tensor_from_proto(pb.TensorProto.FromString(content))
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(back, array)
