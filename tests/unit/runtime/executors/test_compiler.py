"""Functions whose kernels may wait for other steps, also through calls."""

from __future__ import annotations

import pytest

import protos as pb
from runtime.executors.compiler import FunctionExecutors
from runtime.framework.attr_value import NameAttrList
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.passes.optimizer import Optimizer
from runtime.registrations import kernel_registry


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
