"""Loops over the elements of a list, as the front end builds them from a cell."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import protos as pb
import runtime.client as tf
from runtime.api import SessionOptions, new_session
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.node import Node
from tests.unit.runtime.clusters.loops.recurrent_layers import loops_of, optimised

UNITS, WIDTH = 4, 3
FLOAT = tf.float32
X = "x:0"
# (element, states) → new states; the first state is the one that is written to the list
Cell = Callable[[Any, Sequence[Any]], Sequence[Any]]


@dataclasses.dataclass(frozen=True)
class Options:
    """What differs from a plain loop over all elements, which writes each output to a list."""

    states: int = 2
    limit: Callable[[Any], Any] = lambda steps: steps  # number of elements → limit of the counter
    start: int = 0
    step: int = 1
    writes_last: bool = False  # the list has one element, which each iteration replaces
    length: Callable[[Any], Any] = lambda steps: steps  # number of elements → of the output list
    shape: Sequence[int] = (-1, UNITS)  # that the output list requires
    written: Callable[[Sequence[Any]], Any] = lambda states: states[0]
    compares: Callable[[Any, Any], Any] = tf.ops.Less
    initial: Callable[[Any, int], Any] = lambda batch, _: tf.zeros(tf.stack([batch, UNITS]))


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def inputs(batch: int = 2, steps: int = 5) -> np.ndarray:
    """The input of a loop [steps, batch, width]."""
    return weights(steps, batch, WIDTH, seed=batch + steps)


def lstm_gates(x: Any, h: Any, units: int = UNITS) -> list[Any]:
    """The gates of an LSTM before their activations: i, f, c, o."""
    kernel, recurrent = weights(WIDTH, 4 * units, seed=1), weights(units, 4 * units, seed=2)
    total = tf.matmul(x, kernel) + tf.matmul(h, recurrent) + weights(4 * units, seed=3)
    gates: list[Any] = tf.split(total, 4, axis=1)
    return gates


def lstm(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    h, c = states
    i, f, g, o = lstm_gates(x, h)
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    return tf.sigmoid(o) * tf.tanh(c), c


def graph_of(cell: Cell, options: Options | None = None) -> tuple[pb.GraphDef, list[str]]:
    """A graph that runs a cell, and its fetches: the stacked list and the final states."""
    given = Options() if options is None else options
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(FLOAT, [None, None, WIDTH], name="x")
        steps, batch = tf.unstack(tf.shape(x), num=3)[:2]
        elements = tf.ops.TensorListFromTensor(x, np.int32([-1, WIDTH]), element_dtype=FLOAT)
        length = 1 if given.writes_last else given.length(steps)
        outputs = tf.ops.TensorListReserve(np.int32(given.shape), length, element_dtype=FLOAT)
        states = [given.initial(batch, index) for index in range(given.states)]
        limit = given.limit(steps)

        def body(time: Any, written: Any, *before: Any) -> tuple[Any, ...]:
            x = tf.ops.TensorListGetItem(elements, time, np.int32([-1, WIDTH]), element_dtype=FLOAT)
            x.set_shape([None, WIDTH])
            after = cell(x, before)
            position = 0 if given.writes_last else time
            written = tf.ops.TensorListSetItem(written, position, given.written(after))
            return time + given.step, written, *after

        result = tf.while_loop(
            lambda time, *_: given.compares(time, limit), body, (given.start, outputs, *states)
        )
        stacked = tf.ops.TensorListStack(
            result[1], np.int32(given.shape), element_dtype=FLOAT, name="stacked"
        )
        fetches = [stacked, *result[2:]]
    return graph.as_graph_def(), [each.name for each in fetches]


def loop_of(graph: pb.GraphDef, fetches: Sequence[str]) -> tuple[Node, FunctionLibrary]:
    """The loop of a graph, and the functions that it calls."""
    step, library = optimised(graph, {X: inputs()}, dict.fromkeys(fetches))
    (node,) = loops_of(step)
    return node, library


def run(
    graph: pb.GraphDef, fetches: Sequence[str], feeds: Mapping[str, np.ndarray], clusters: str
) -> list[np.ndarray]:
    """The values of the fetches in a new session."""
    session = new_session(SessionOptions(config=pb.ConfigProto(), clusters=clusters))
    session.create(graph)
    try:
        return [np.asarray(each) for each in session.run(feeds, list(fetches))]
    finally:
        session.close()
