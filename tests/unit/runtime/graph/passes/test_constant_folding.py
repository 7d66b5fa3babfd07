"""Constant folding: which nodes are computed once, and which edges remain."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import protos as pb
from runtime.foundation.errors import DeadlineExceededError
from runtime.foundation.running_task import set_running_task
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_to_proto
from runtime.graph.passes import constant_folding
from tests.conformance.case import Graph
from tests.unit.runtime.graph.passes.optimised_steps import optimised, reached
from tests.unit.runtime.sessions.graphs import direct_session


def test_constants_fold() -> None:
    graph = Graph()
    a = graph.add("AddV2", np.float32([1, 2]), np.float32(1), name="a")[0]
    graph.add("Mul", a, np.float32(2), name="m")
    step = optimised(graph.graph_def, "m")
    assert reached(step) == ["Const"]
    node, _ = step.fetches[0]
    assert (node.name, node.attr("value").tolist()) == ("m", [4, 6])


def test_large_results_are_not_folded() -> None:
    graph = Graph()
    graph.add("Fill", np.int32([4, 1024, 1024]), np.float32(1), name="big")
    assert "Fill" in reached(optimised(graph.graph_def, "big"))


def test_constants_of_equal_elements_are_not_joined() -> None:
    """Each takes no memory and is small enough to fold; their copies would be 90 MiB."""
    graph, values = Graph(), []
    for index in range(10):
        tensor = pb.TensorProto(dtype=pb.DT_FLOAT, float_val=[1.0])
        tensor.tensor_shape.dim.add(size=9 << 18)
        values.append(graph.add("Const", name=f"c{index}", dtype="float32", value=tensor)[0])
    graph.add("ConcatV2", values, np.int32(0), name="joined")
    graph.add("Size", graph.add("Pack", values)[0], name="packed")
    tracemalloc.start()
    try:
        ops = reached(optimised(graph.graph_def, "joined", "packed"))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert {"ConcatV2", "Pack"} <= set(ops)


def test_folding_takes_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter((0.0, 0.0, *(constant_folding.FOLDING_SECONDS for _ in range(9))))
    monkeypatch.setattr(constant_folding, "_now", lambda: next(seconds))
    graph = Graph()
    a = graph.add("Neg", np.float32(1), name="a")[0]
    graph.add("Exp", a, name="b")
    step = optimised(graph.graph_def, "b")
    assert "Exp" in reached(step)
    monkeypatch.undo()
    assert reached(optimised(graph.graph_def, "b")) == ["Const"]


def test_a_compilation_ends_with_its_task() -> None:
    graph = Graph()
    graph.add("Neg", np.float32(1), name="a")
    set_running_task((DeadlineExceededError("too late"),))
    try:
        with pytest.raises(DeadlineExceededError, match="too late"):
            optimised(graph.graph_def, "a")
    finally:
        set_running_task(())


def test_failing_constants_are_left_to_the_step() -> None:
    graph = Graph()
    graph.add("AddV2", np.zeros(2, np.float32), np.zeros(3, np.float32), name="bad")
    assert "AddV2" in reached(optimised(graph.graph_def, "bad"))
    with pytest.raises(Exception, match="Incompatible shapes"):
        direct_session(graph.graph_def).run({}, ["bad"])


def test_control_inputs_survive_folding() -> None:
    graph = Graph()
    graph.add("NoOp", name="first")
    graph.add("Neg", np.float32(1), name="n", control=["first"])
    node, _ = optimised(graph.graph_def, "n").fetches[0]
    assert [control.name for control in node.control_inputs] == ["first"]


def test_control_inputs_of_constants_survive_folding() -> None:
    graph = Graph()
    graph.add("NoOp", name="in_the_loop")
    one = tensor_to_proto(np.float32(1))
    gated = graph.add("Const", dtype=DataType.FLOAT, value=one, control=["in_the_loop"])[0]
    graph.add("Neg", gated, name="n")
    node, _ = optimised(graph.graph_def, "n").fetches[0]
    assert node.op == "Const"
    assert [control.name for control in node.control_inputs] == ["in_the_loop"]


def test_folded_nodes_can_still_be_fed() -> None:
    graph = Graph()
    a = graph.add("AddV2", np.float32(1), np.float32(1), name="a")[0]
    graph.add("Mul", a, np.float32(2), name="m")
    session = direct_session(graph.graph_def)
    assert session.run({}, ["m"]) == [4]
    assert session.run({"a": np.float32(5)}, ["m"]) == [10]
