"""Functions run on forms; what has no form is named in the error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runtime.client as tf
from runtime.clusters.loops.forms import Form, Forms, Kind, UnrecognisedError
from runtime.clusters.loops.interpretation import interpret, variable
from runtime.framework.dtypes import DataType
from runtime.graph.function_library import FunctionBody
from runtime.graph.graph import Graph
from runtime.graph.graph_constructor import extend_graph

W = np.ones((4, 6), np.float32)


def results(function: Callable[[Any], Any]) -> tuple[Forms, Form, Form]:
    """The forms of a loop variable x [-1, 4], and of `function` of it."""
    client_graph = tf.Graph()
    with client_graph.as_default():
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        y = function(x)
    graph = extend_graph(Graph(), client_graph.as_graph_def())
    nodes = tuple(graph.nodes.values())
    result = (graph.nodes[y.op.name], y.value_index)
    body = FunctionBody("body", nodes, (graph.nodes["x"],), (result,), (), False)
    forms = Forms()
    before = variable(forms, 0, DataType.FLOAT)
    (after,) = interpret(body, [before], forms, graph.library)
    return forms, before, after


def linear(x: Any) -> Any:
    return tf.matmul(x, tf.ops.Const(value=W, dtype=tf.float32))


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda x: tf.identity(x), Kind.VARIABLE),
        (lambda x: linear(x), Kind.LINEAR),
        (lambda x: linear(x) + 1.0, Kind.LINEAR),
        (lambda x: linear(x) * 2.0, Kind.LINEAR),
        (lambda x: linear(x) / 2.0, Kind.LINEAR),
        (lambda x: tf.nn.bias_add(linear(x), np.ones(6, "f")), Kind.LINEAR),
        (lambda x: tf.split(linear(x), 2, axis=-1)[1], Kind.LINEAR),
        (lambda x: tf.split(linear(x), [1, -1, 2], axis=1)[1], Kind.LINEAR),
        (lambda x: linear(x)[:, 1:3], Kind.LINEAR),
        (lambda x: tf.concat([linear(x), x], 1), Kind.JOINED),
        (lambda x: tf.tanh(linear(x)), Kind.ACTIVATED),
        (lambda x: tf.nn.relu6(x), Kind.CLIPPED),
        (lambda x: tf.minimum(x, 2.0), Kind.CAPPED),
        (lambda x: 1.0 - tf.sigmoid(x), Kind.COMPLEMENT),
        (lambda x: x * tf.tanh(x), Kind.PRODUCT),
        (lambda x: x + tf.tanh(x), Kind.SUM),
        (lambda x: x * tf.ones_like(x), Kind.VARIABLE),
    ],
)
def test_forms(function: Callable[[Any], Any], kind: Kind) -> None:
    assert results(function)[2].kind is kind


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: tf.ops.Exp(x), "is a Exp"),
        (lambda x: tf.matmul(x, x), "is not a product of a value and a weight"),
        (lambda x: tf.matmul(x, W, transpose_a=True), "is not a product of a value and a weight"),
        (lambda x: 2.0 - x, "subtracts from something other than 1"),
        (lambda x: x - 1.0, "subtracts from something other than 1|not a constant"),
        (lambda x: tf.maximum(x, 1.0), "a maximum with something other than 0"),
        (lambda x: tf.split(x, 2, axis=0)[0], "cuts the batch"),
        (lambda x: linear(x)[1:], "cuts the batch"),
        (lambda x: linear(x)[:, 1], "takes single columns"),
        (lambda x: linear(x)[:, ::2], "takes single columns"),
        (lambda x: linear(x)[:, tf.newaxis], "has new axes"),
        (lambda x: tf.concat([x, x], 0), "joins other than columns"),
        (lambda x: tf.squeeze(x), "Squeeze"),
    ],
)
def test_what_has_no_form(function: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(UnrecognisedError, match=message):
        results(function)


def body_of(function: Callable[[Any], Any], control: str = "") -> tuple[FunctionBody, Graph]:
    """A function of x [-1, 4]; the node `control` runs even if no result depends on it."""
    client_graph = tf.Graph()
    with client_graph.as_default():
        y = function(tf.placeholder(tf.float32, [None, 4], name="x"))
    graph = extend_graph(Graph(), client_graph.as_graph_def())
    nodes = graph.nodes
    controls = (nodes[control],) if control else ()
    results = ((nodes[y.op.name], 0),)
    return FunctionBody(
        "body", tuple(nodes.values()), (nodes["x"],), results, controls, True
    ), graph


@pytest.mark.parametrize("is_dependency", [False, True])
def test_a_function_that_prints_has_no_form(is_dependency: bool) -> None:
    def printing(x: Any) -> Any:
        printed = tf.ops.PrintV2("once an iteration", name="printed")
        with tf.control_dependencies([printed] if is_dependency else []):
            return tf.tanh(linear(x))

    body, graph = body_of(printing, "" if is_dependency else "printed")
    forms = Forms()
    with pytest.raises(UnrecognisedError, match=r"printed \(PrintV2\) has effects"):
        interpret(body, [variable(forms, 0, DataType.FLOAT)], forms, graph.library)


def test_a_node_that_declares_another_type_has_no_form() -> None:
    body, graph = body_of(lambda x: tf.tanh(x, name="wrong"))
    node = graph.nodes["wrong"]
    node.node_def.attr["T"].type = DataType.DOUBLE
    node.set_attrs({})
    forms = Forms()
    with pytest.raises(UnrecognisedError, match="wrong has other types than it declares"):
        interpret(body, [variable(forms, 0, DataType.FLOAT)], forms, graph.library)


def test_cuts_of_the_weights() -> None:
    _, x, cut = results(lambda x: linear(x)[:, 1:3])
    (matrix,) = cut.matrices
    assert cut.sources == (x,)
    assert matrix.detail == ("range", (-1, 1, 3))


def test_a_counter() -> None:
    forms = Forms()
    assert variable(forms, 3, DataType.INT32).detail == (3, 0)
    assert variable(forms, 3, DataType.FLOAT).kind is Kind.VARIABLE
