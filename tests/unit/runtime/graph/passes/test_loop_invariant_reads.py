"""Variables that a loop only reads are read before it; any doubt leaves the loop as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runtime.client as tf
from runtime.framework.dtypes import DataType
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.node import Node
from runtime.graph.passes.optimizer import Optimizer
from runtime.graph.passes.pruning import StepGraph, prune
from runtime.registrations import kernel_registry

START = 1.5
Body = Callable[[Any, Any], tuple[Any, Any]]


class Loop:
    """Three iterations of `body` over (i, x), which may use the handles `v` and `w`."""

    def __init__(self, body: Callable[[Loop], Body], after: Callable[[Loop], Any] | None = None):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.v, self.w = (
                tf.Variable(START, use_resource=True, name=name).handle for name in "vw"
            )
            self.start = tf.placeholder(tf.float32, [], name="start")
            self.result = tf.while_loop(lambda i, x: i < 3, body(self), (0, self.start))[1]
            self.out = tf.identity(self.result if after is None else after(self), name="out")
            self.initializer = tf.global_variables_initializer()

    def optimised(self) -> tuple[StepGraph, Node]:
        """The step's graph after the passes, and its loop."""
        graph = extend_graph(RuntimeGraph(), self.graph.as_graph_def())
        step = prune(graph, ["start:0"], ["out:0"], [])
        Optimizer().run(step, graph.library, kernel_registry())
        self.library = graph.library
        return step, next(node for node in step.nodes if "While" in node.op)

    def run(self, start: float = 2.0) -> float:
        with tf.Session(graph=self.graph) as session:
            session.run(self.initializer)
            return float(session.run(self.out, {self.start: start}))


def read(handle: Any) -> Any:
    return tf.ops.ReadVariableOp(handle, dtype=tf.float32)


def handles_of(loop: Node) -> list[str]:
    """The names of the variables whose handles the loop gets."""
    return [s.name for s, i in loop.inputs if s.output_types[i] is DataType.RESOURCE]


def multiplied(loop: Loop) -> Body:
    return lambda i, x: (i + 1, x * read(loop.v))


def test_a_variable_that_a_loop_reads_is_read_before_it() -> None:
    loop = Loop(multiplied)
    _, node = loop.optimised()
    assert handles_of(node) == []
    assert node.op == "StatelessWhile"
    before = [source for source, _ in node.inputs if source.op == "ReadVariableOp"]
    assert [each.inputs[0][0].name for each in before] == ["v"]
    assert before[0].control_inputs == []
    body = loop.library.body(node.attr("body"))
    assert "ReadVariableOp" not in {each.op for each in body.nodes}
    assert body.arguments[2].output_types == (DataType.FLOAT,)
    assert loop.run() == 2 * START**3


def test_two_reads_of_one_variable_are_one_read() -> None:
    loop = Loop(lambda loop: lambda i, x: (i + 1, x * read(loop.v) + read(loop.v)))
    step, _ = loop.optimised()
    assert [node.op for node in step.nodes].count("ReadVariableOp") == 1
    x = 2.0
    for _ in range(3):
        x = x * START + START
    assert loop.run() == x


def test_a_read_in_the_condition_moves_too() -> None:
    graph = tf.Graph()
    with graph.as_default():
        limit = tf.Variable(20.0, use_resource=True)
        x = tf.placeholder(tf.float32, [], name="start")
        out = tf.while_loop(lambda x: x < read(limit.handle), lambda x: x * 3, [x])
        initializer = tf.global_variables_initializer()
    with tf.Session(graph=graph) as session:
        session.run(initializer)
        assert session.run(out, {x: 2.0}) == 54
        session.run(tf.ops.AssignVariableOp(limit.handle, 60.0))
        assert session.run(out, {x: 2.0}) == 162


def writes_what_it_reads(loop: Loop) -> Body:
    def body(i: Any, x: Any) -> tuple[Any, Any]:
        with tf.control_dependencies([tf.ops.AssignAddVariableOp(loop.v, 1.0)]):
            return i + 1, x * read(loop.v)

    return body


def writes_another(loop: Loop) -> Body:
    def body(i: Any, x: Any) -> tuple[Any, Any]:
        with tf.control_dependencies([tf.ops.AssignAddVariableOp(loop.w, 1.0)]):
            return i + 1, x * read(loop.v)

    return body


def reads_in_a_branch(loop: Loop) -> Body:
    return lambda i, x: (i + 1, tf.cond(x > 1, lambda: x * read(loop.v), lambda: x))


@pytest.mark.parametrize("body", [writes_what_it_reads, writes_another, reads_in_a_branch])
def test_a_loop_that_may_write_stays(body: Callable[[Loop], Body]) -> None:
    _, node = Loop(body).optimised()
    assert node.op == "While"
    assert "v" in handles_of(node)


def test_values_of_a_loop_that_writes() -> None:
    x, v = 2.0, START
    for _ in range(3):
        v += 1
        x *= v
    assert Loop(writes_what_it_reads).run() == x


def test_a_gathered_variable_keeps_its_handle() -> None:
    graph = tf.Graph()
    with graph.as_default():
        rows = tf.Variable([2.0, 3.0, 5.0], use_resource=True)
        x = tf.placeholder(tf.float32, [], name="start")

        def body(i: Any, x: Any) -> tuple[Any, Any]:
            return i + 1, x * tf.ops.ResourceGather(rows.handle, i, dtype=tf.float32)

        out = tf.while_loop(lambda i, x: i < 3, body, (0, x))[1]
        initializer = tf.global_variables_initializer()
    with tf.Session(graph=graph) as session:
        session.run(initializer)
        assert session.run(out, {x: 2.0}) == 60


def test_a_step_that_writes_the_variable_keeps_the_order() -> None:
    """The write is ordered before the loop only through a loop variable."""
    graph = tf.Graph()
    with graph.as_default():
        v = tf.Variable(START, use_resource=True, name="v")
        start = tf.placeholder(tf.float32, [], name="start")
        with tf.control_dependencies([tf.ops.AssignVariableOp(v.handle, 4.0)]):
            x = tf.identity(start)
        out = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * read(v.handle)), (0, x))
        tf.identity(out[1], name="out")
        initializer = tf.global_variables_initializer()
    runtime_graph = extend_graph(RuntimeGraph(), graph.as_graph_def())
    step = prune(runtime_graph, ["start:0"], ["out:0"], [])
    Optimizer().run(step, runtime_graph.library, kernel_registry())
    reads = [node for node in step.nodes if node.op == "ReadVariableOp"]
    assert [node.inputs[0][0].name for node in reads] == ["v"]
    assert {source.op for source in reads[0].control_inputs} >= {"Identity"}
    with tf.Session(graph=graph) as session:
        session.run(initializer)
        assert session.run(out[1], {start: 2.0}) == 2.0 * 4**3


def test_a_write_of_another_variable_orders_nothing() -> None:
    def after(loop: Loop) -> Any:
        with tf.control_dependencies([tf.ops.AssignVariableOp(loop.w, loop.result)]):
            return tf.identity(loop.result)

    loop = Loop(multiplied, after)
    step, _ = loop.optimised()
    (read_before,) = (each for each in step.nodes if each.op == "ReadVariableOp")
    assert read_before.control_inputs == []
    assert loop.run() == 2 * START**3


def test_nothing_waits_for_a_loop_without_an_effect() -> None:
    def after(loop: Loop) -> Any:
        with tf.control_dependencies([loop.result.op]):
            return tf.identity(loop.result) + 1

    step, node = Loop(multiplied, after).optimised()
    assert not any(node in each.control_inputs for each in step.nodes)


def test_an_uninitialised_variable_is_an_error_of_the_read() -> None:
    loop = Loop(multiplied)
    with (
        tf.Session(graph=loop.graph) as session,
        pytest.raises(tf.errors.FailedPreconditionError, match="v") as raised,
    ):
        session.run(loop.out, {loop.start: 1.0})
    assert "ReadVariableOp" in str(raised.value)


def test_a_loop_of_an_unknown_function_fails_only_where_it_is_reached() -> None:
    loop = Loop(multiplied)
    graph_def = loop.graph.as_graph_def()
    (node,) = (each for each in graph_def.node if "While" in each.op)
    node.attr["body"].func.name = "gone"
    graph = extend_graph(RuntimeGraph(), graph_def)
    step = prune(graph, ["start:0"], ["out:0"], [])
    Optimizer().run(step, graph.library, kernel_registry())
    assert [each.attr("body").name for each in step.nodes if "While" in each.op] == ["gone"]


def test_other_sessions_see_updates_between_steps() -> None:
    loop = Loop(multiplied)
    with tf.Session(graph=loop.graph) as session:
        session.run(loop.initializer)
        for factor in (2.0, 3.0, -1.0):
            with loop.graph.as_default():
                session.run(tf.ops.AssignVariableOp(loop.v, np.float32(factor)))
            assert session.run(loop.out, {loop.start: 2.0}) == 2 * factor**3


def test_the_variable_of_a_loop_without_iterations_must_have_a_value() -> None:
    """TensorFlow raises no error here; see `loop-reads` in DIFFERENCES.md."""
    graph = tf.Graph()
    with graph.as_default():
        v = tf.Variable(START, use_resource=True)
        x = tf.placeholder(tf.float32, [])

        out = tf.while_loop(lambda i, x: i < 0, lambda i, x: (i, x * read(v.handle)), (0, x))[1]
    with (
        tf.Session(graph=graph) as session,
        pytest.raises(tf.errors.FailedPreconditionError),
    ):
        session.run(out, {x: 1.0})
