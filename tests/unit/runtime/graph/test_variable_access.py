"""Which variables a step may write: by handle, by reference, by name, and in functions."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.variable_access import read_only_variables
from runtime.kernels.state.resource_variables import ANONYMOUS_NAME
from tests.conformance.case import Graph
from tests.node_builder import build_node_def
from tests.unit.runtime.graph.passes.divided_steps import VariableGraph, step_graph

ONES = np.ones(2, np.float32)


def read_only(graph: Graph, *fetches: str, targets: tuple[str, ...] = ()) -> set[str]:
    step, library = step_graph(graph, *fetches, targets=targets)
    return {node.name for node in read_only_variables(step, library)}


def two_reads() -> tuple[VariableGraph, tuple[str, DataType], tuple[str, DataType]]:
    """Variables v and w, and their reads rv and rw."""
    graph = VariableGraph()
    v, w = graph.handle("v"), graph.handle("w")
    graph.read(v, "rv")
    graph.read(w, "rw")
    return graph, v, w


def test_variables_that_are_only_read() -> None:
    graph, v, _ = two_reads()
    graph.add("ResourceGather", v, np.int32(0), name="row", dtype="float32")
    graph.add("VariableShape", v, name="shape")
    assert read_only(graph, "rv", "rw", "row", "shape") == {"v", "w"}


def test_an_assigned_variable_is_written() -> None:
    graph, v, _ = two_reads()
    graph.add("AssignAddVariableOp", v, ONES, name="add", dtype="float32")
    assert read_only(graph, "rv", "rw", targets=("add",)) == {"w"}


def test_a_handle_that_an_identity_passes_on_is_the_same() -> None:
    graph, v, _ = two_reads()
    same = graph.add("Identity", v, name="same")[0]
    graph.read(same, "read_same")
    assert read_only(graph, "read_same", "rw") == {"v", "w"}
    graph.add("AssignAddVariableOp", same, ONES, name="add", dtype="float32")
    assert read_only(graph, "rv", "rw", targets=("add",)) == {"w"}


def test_two_handles_of_one_variable() -> None:
    graph, _, _ = two_reads()
    other = graph.handle("v", "v_again", container="localhost")
    graph.add("AssignAddVariableOp", other, ONES, name="add", dtype="float32")
    assert read_only(graph, "rv", "rw", targets=("add",)) == {"w"}


def test_an_anonymous_variable_is_left_out() -> None:
    graph = VariableGraph()
    graph.read(graph.handle(ANONYMOUS_NAME, "v"), "r")
    assert read_only(graph, "r") == set()


def test_a_handle_that_leaves_the_step_is_left_out() -> None:
    graph, _, w = two_reads()
    assert read_only(graph, "v", "rv", "rw") == {"w"}
    graph.add("Switch", w, np.bool_(True), name="switch")
    assert read_only(graph, "switch:1", "rv", "rw") == {"v"}


def test_references() -> None:
    graph = VariableGraph()
    v, w = graph.reference("v"), graph.reference("w")
    graph.add("Identity", v, name="rv")
    graph.add("Neg", w, name="nw")
    graph.add("AssignAdd", w, ONES, name="add")
    assert read_only(graph, "rv", "nw") == {"v", "w"}
    assert read_only(graph, "rv", "nw", targets=("add",)) == {"v"}


def test_a_handle_from_elsewhere_may_name_every_variable() -> None:
    graph, _, _ = two_reads()
    queue = graph.add("FIFOQueueV2", name="q", component_types=(DataType.RESOURCE,))[0]
    taken = graph.add("QueueDequeueV2", queue, name="taken", component_types=(DataType.RESOURCE,))[
        0
    ]
    graph.read(taken, "other")
    assert read_only(graph, "rv", "other") == {"v"}
    graph.add("AssignAddVariableOp", taken, ONES, name="add", dtype="float32")
    assert read_only(graph, "rv", targets=("add",)) == set()


def test_an_iterator_may_run_a_function_that_writes() -> None:
    graph, _, _ = two_reads()
    types = {"output_types": (DataType.FLOAT,), "output_shapes": ((2,),)}
    iterator = graph.add("IteratorV2", name="it", shared_name="it", container="", **types)[0]
    graph.add("IteratorGetNext", iterator, name="next", **types)
    assert read_only(graph, "rv", "next") == set()


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        ("RandomUniform", (np.int32([2]),), {"dtype": "float32"}),
        ("Assert", (np.bool_(True), [np.float32(1)]), {}),
        ("FIFOQueueV2", (), {"component_types": (DataType.FLOAT,)}),
    ],
)
def test_stateful_ops_that_leave_variables_alone(
    op: str, inputs: tuple[object, ...], attrs: dict[str, object]
) -> None:
    graph, _, _ = two_reads()
    graph.add(op, *inputs, name="other", **attrs)
    assert read_only(graph, "rv", targets=("other",)) == {"v"}


# Functions


def function(
    name: str, nodes: list[pb.NodeDef], inputs: tuple[tuple[str, DataType], ...] = ()
) -> pb.FunctionDef:
    """A function without outputs that runs `nodes`."""
    made = pb.FunctionDef(node_def=nodes)
    made.signature.name = name
    made.signature.is_stateful = True
    for argument, data_type in inputs:
        made.signature.input_arg.add(name=argument, type=int(data_type))
    for node in nodes:
        made.control_ret[node.name] = node.name
        made.signature.control_output.append(node.name)
    return made


def call(graph: Graph, made: pb.FunctionDef, *inputs: tuple[str, DataType]) -> None:
    """Add an If, which is not inlined, whose branches are `made`."""
    graph.graph_def.library.function.append(made)
    condition = graph.placeholder("bool", "condition")
    branch = NameAttrList(made.signature.name)
    graph.add(
        "If", condition, list(inputs), name="if", then_branch=branch, else_branch=branch, Tout=()
    )


def constant(name: str) -> pb.NodeDef:
    graph = Graph()
    graph.add("Const", name=name, dtype="float32", value=pb.TensorProto(dtype=pb.DT_FLOAT))
    return graph.graph_def.node[0]


def assign_add(handle: str) -> list[pb.NodeDef]:
    value = ("one:output:0", DataType.FLOAT)
    node = build_node_def(
        "AssignAddVariableOp", "add", ((handle, DataType.RESOURCE), value), {"dtype": "float32"}
    )
    return [constant("one"), node]


def test_a_function_may_write_the_handles_that_it_is_given() -> None:
    graph, v, _ = two_reads()
    call(graph, function("write", assign_add("h"), (("h", DataType.RESOURCE),)), v)
    assert read_only(graph, "rv", "rw", targets=("if",)) == {"w"}


def test_a_function_may_write_the_variables_that_it_names() -> None:
    graph, _, _ = two_reads()
    attrs = {"dtype": "float32", "shape": (2,), "shared_name": "w"}
    handle = build_node_def("VarHandleOp", "inner", (), attrs)
    call(graph, function("write", [handle, *assign_add("inner:resource:0")]))
    assert read_only(graph, "rv", "rw", targets=("if",)) == {"v"}


def test_a_function_that_writes_a_handle_from_elsewhere() -> None:
    graph, _, _ = two_reads()
    other = graph.placeholder("resource", "other")
    call(graph, function("write", assign_add("h"), (("h", DataType.RESOURCE),)), other)
    assert read_only(graph, "rv", "rw", targets=("if",)) == set()


def test_a_function_that_takes_from_an_iterator() -> None:
    graph, v, _ = two_reads()
    types = {"output_types": (DataType.FLOAT,), "output_shapes": ((2,),)}
    node = build_node_def("IteratorGetNext", "next", (("h", DataType.RESOURCE),), types)
    call(graph, function("take", [node], (("h", DataType.RESOURCE),)), v)
    assert read_only(graph, "rw", targets=("if",)) == set()


def test_a_function_that_only_computes() -> None:
    graph, _, _ = two_reads()
    call(graph, function("nothing", [constant("one")]))
    assert read_only(graph, "rv", "rw", targets=("if",)) == {"v", "w"}


def test_a_function_that_the_library_lacks() -> None:
    graph, _, _ = two_reads()
    call(graph, function("missing", [constant("one")]))
    step, _ = step_graph(graph, "rv", targets=("if",))
    assert read_only_variables(step, FunctionLibrary()) == {}
