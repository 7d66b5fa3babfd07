"""Functions whose kernels may wait for other steps, also through calls."""

from __future__ import annotations

import sys

import pytest

import protos as pb
from runtime.executors.compiler import FunctionExecutors, build_executor, compile_step
from runtime.executors.step import Executor
from runtime.framework.attr_value import NameAttrList
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.passes.optimizer import Optimizer
from runtime.graph.passes.pruning import StepGraph
from runtime.registrations import kernel_registry
from tests.unit.runtime.sessions.graphs import g1


def calling(name: str, other: str, takes: bool) -> pb.FunctionDef:
    """A function that passes its queue to another function and, if `takes`, dequeues from it."""
    function = pb.FunctionDef()
    function.signature.name = name
    function.signature.input_arg.add(name="queue", type=pb.DT_RESOURCE)
    call = function.node_def.add(name="call", op="StatefulPartitionedCall", input=["queue"])
    call.attr["f"].func.name = other
    call.attr["Tin"].list.type.append(pb.DT_RESOURCE)
    call.attr["Tout"].list.SetInParent()
    if takes:
        take = function.node_def.add(name="take", op="QueueDequeueV2", input=["queue"])
        take.attr["component_types"].list.type.append(pb.DT_FLOAT)
    return function


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_functions_that_call_each_other_wait_when_one_does(order: str) -> None:
    library = FunctionLibrary([calling("a", "b", takes=True), calling("b", "a", takes=False)])
    functions = FunctionExecutors(library, kernel_registry(), Optimizer(is_on=False))
    assert [functions.may_wait(NameAttrList(name, {})) for name in order] == [True, True]


def test_edge_lists_of_a_step_have_no_room_for_more() -> None:
    kernels = kernel_registry()
    graph = extend_graph(RuntimeGraph(), g1())
    built: list[StepGraph] = []

    def build(step: StepGraph, *others: object) -> Executor:
        built.append(step)
        return build_executor(step, kernels, functions)

    functions = FunctionExecutors(graph.library, kernels, Optimizer())
    compile_step(graph, kernels, ["x:0"], ["n:0"], [], build, functions, lambda _: None)
    (edges,) = (node.inputs for node in built[0].nodes if node.name == "n")
    assert len(edges) == 1
    assert sys.getsizeof(edges) == sys.getsizeof([None])
