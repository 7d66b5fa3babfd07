"""Kernels that wait for other steps, in plans; functions that reach them."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import DeadlineExceededError, SessionOptions, new_session
from runtime.executors.compiler import FunctionExecutors
from runtime.executors.step_plan import GENERATE_AT_RUN
from runtime.framework.attr_value import NameAttrList
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.passes.optimizer import Optimizer
from runtime.registrations import kernel_registry
from tests.conformance.case import Graph


def test_a_generated_plan_waits_for_a_queue() -> None:
    graph = Graph()
    queue = graph.add("FIFOQueueV2", name="queue", component_types=["float32"], shapes=[[]])[0]
    graph.add("QueueEnqueueV2", queue, np.float32(5), name="put", Tcomponents=["float32"])
    taken = graph.add("QueueDequeueV2", queue, component_types=["float32"])[0]
    negative = graph.add("Neg", taken)[0]
    config = pb.ConfigProto()
    config.experimental.executor_type = "SINGLE_THREADED_EXECUTOR"
    session = new_session(SessionOptions(config=config))
    session.create(graph.graph_def)
    for _ in range(GENERATE_AT_RUN + 1):
        session.run({}, (), ["put"])
        assert session.run({}, [negative[0]]) == [-5]
    soon = pb.RunOptions(timeout_in_ms=50)
    with pytest.raises(DeadlineExceededError, match="Timed out waiting for notification"):
        session.run({}, [negative[0]], (), soon)
    session.close()


def calling(name: str, other: str, takes: bool) -> pb.FunctionDef:
    """A function of a queue that calls another one with it, and may take of it then."""
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
