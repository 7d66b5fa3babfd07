"""What a loop computes is recognised by value; anything else stays a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import runtime.client as tf
from runtime.clusters.loops.cells import CellKind
from runtime.clusters.loops.forms import UnrecognisedError
from runtime.clusters.loops.recognise import RecurrentLoop, recognise, recognised
from runtime.framework.attr_value import NameAttrList
from tests.unit.runtime.clusters.loops.recurrent_graphs import (
    UNITS,
    WIDTH,
    Cell,
    Options,
    graph_of,
    loop_of,
    lstm,
    lstm_gates,
    weights,
)

KERNEL, RECURRENT = weights(WIDTH, 2 * UNITS, seed=4), weights(UNITS, 2 * UNITS, seed=5)
LAST, LAST_RECURRENT = weights(WIDTH, UNITS, seed=6), weights(UNITS, UNITS, seed=7)
ONE = Options(states=1)


def loop_description(cell: Cell, options: Options | None = None) -> RecurrentLoop:
    return recognise(*loop_of(*graph_of(cell, options)))


def simple(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    (h,) = states
    return (tf.tanh(tf.matmul(x, LAST) + tf.matmul(h, LAST_RECURRENT)),)


def gru(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    (h,) = states
    z, r = tf.split(tf.sigmoid(tf.matmul(x, KERNEL) + tf.matmul(h, RECURRENT)), 2, axis=1)
    candidate = tf.tanh(tf.matmul(x, LAST) + tf.matmul(r * h, LAST_RECURRENT))
    return (z * h + (1.0 - z) * candidate,)


def gru_of_joined_values(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    """One product with [x, h], as the cells of TensorFlow 1 have it; the gates are r, z."""
    (h,) = states
    both = np.concatenate([KERNEL, RECURRENT])
    r, z = tf.split(tf.sigmoid(tf.matmul(tf.concat([x, h], 1), both)), 2, axis=1)
    last = np.concatenate([LAST, LAST_RECURRENT])
    candidate = tf.tanh(tf.matmul(tf.concat([x, r * h], 1), last))
    return ((1.0 - z) * candidate + h * z,)


def lstm_of_tensorflow_1(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    """BasicLSTMCell: gates i, j, f, o, and a number that is added to the forget gate."""
    h, c = states
    kernel = weights(WIDTH + UNITS, 4 * UNITS, seed=8)
    i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), kernel) + 0.25, 4, axis=1)
    c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
    return tf.tanh(c) * tf.sigmoid(o), c


def stacked(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    second, first = states
    (first,) = simple(x, [first])
    return tf.tanh(
        tf.matmul(first, RECURRENT[:, :UNITS]) + tf.matmul(second, LAST_RECURRENT)
    ), first


KNOWN: dict[str, tuple[Cell, Options, list[CellKind]]] = {
    "lstm": (lstm, Options(), [CellKind.LSTM]),
    "lstm of TensorFlow 1": (lstm_of_tensorflow_1, Options(), [CellKind.LSTM]),
    "only the last output": (lstm, Options(writes_last=True), [CellKind.LSTM]),
    "gru": (gru, ONE, [CellKind.GRU]),
    "gru of joined values": (gru_of_joined_values, ONE, [CellKind.GRU]),
    "simple": (simple, ONE, [CellKind.SIMPLE]),
    "one after the other": (stacked, Options(), [CellKind.SIMPLE, CellKind.SIMPLE]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_cells(name: str) -> None:
    cell, options, kinds = KNOWN[name]
    loop = loop_description(cell, options)
    assert [each.kind for each in loop.cells] == kinds
    assert len(loop.counters) == 1
    assert [each.counter is None for each in loop.lists] == [options.writes_last]


def test_where_the_reset_gate_is() -> None:
    def resets_after(x: Any, states: Sequence[Any]) -> Sequence[Any]:
        (h,) = states
        z, r = tf.split(tf.sigmoid(tf.matmul(x, KERNEL) + tf.matmul(h, RECURRENT)), 2, axis=1)
        candidate = tf.tanh(tf.matmul(x, LAST) + r * (tf.matmul(h, LAST_RECURRENT) + 0.5))
        return (z * h + (1.0 - z) * candidate,)

    (after,) = loop_description(resets_after, ONE).cells
    (before,) = loop_description(gru, ONE).cells
    assert (after.resets_after, before.resets_after) == (True, False)
    assert len(after.gates[2].recurrent_biases) == 1
    assert before.gates[2].recurrent_biases == ()


def peephole(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    h, c = states
    i, f, g, o = lstm_gates(x, h)
    c = tf.sigmoid(f + c * weights(UNITS)) * c + tf.sigmoid(i) * tf.tanh(g)
    return tf.sigmoid(o) * tf.tanh(c), c


def masked(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    after = lstm(x, states)
    seen = tf.reduce_sum(x, 1, keepdims=True) > 0
    return [tf.where(seen, new, old) for new, old in zip(after, states, strict=True)]


def projected(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    h, c = lstm(x, states)
    return tf.matmul(h, weights(UNITS, UNITS)), c


def other_activations(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    h, c = states
    i, f, g, o = lstm_gates(x, h)
    c = tf.sigmoid(f) * c + tf.nn.relu(i) * tf.tanh(g)
    return tf.sigmoid(o) * tf.tanh(c), c


def forgets_the_output(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    """Gates of the memory instead of the output."""
    h, c = lstm(x, (states[1], states[1]))
    return h, c


def keeps_the_output(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    """The memory is what the output was."""
    return lstm(x, states)[0], states[0]


def complement_of_another_gate(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    (h,) = states
    z, r = tf.split(tf.sigmoid(tf.matmul(x, KERNEL) + tf.matmul(h, RECURRENT)), 2, axis=1)
    candidate = tf.tanh(tf.matmul(x, LAST) + tf.matmul(r * h, LAST_RECURRENT))
    return (z * h + (1.0 - r) * candidate,)


def without_input(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    (h,) = states
    return (tf.tanh(tf.matmul(h, LAST_RECURRENT)),)


def half(x: Any, states: Sequence[Any]) -> Sequence[Any]:
    return (simple(x, states)[0] * 0.5,)


UNKNOWN: dict[str, tuple[Cell, Options]] = {
    "peephole": (peephole, Options()),
    "masked": (masked, Options()),
    "projected": (projected, Options()),
    "other activations": (other_activations, Options()),
    "gates of the memory": (forgets_the_output, Options()),
    "memory of the output": (keeps_the_output, Options()),
    "complement of another gate": (complement_of_another_gate, ONE),
    "without input": (without_input, ONE),
    "half": (half, ONE),
    "each second element": (simple, Options(states=1, step=2)),
    "a limit below which nothing is": (simple, Options(states=1, compares=tf.ops.NotEqual)),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_loops(name: str) -> None:
    assert recognised(*loop_of(*graph_of(*UNKNOWN[name]))) is None


def test_a_list_of_something_else() -> None:
    node, library = loop_of(*graph_of(lstm, Options(written=lambda states: states[1])))
    with pytest.raises(UnrecognisedError, match="a list of something other than"):
        recognise(node, library)


def test_the_order_of_stacked_cells() -> None:
    first, second = loop_description(stacked).cells
    assert second.source is first.output


def test_an_unknown_function_is_no_known_loop() -> None:
    node, library = loop_of(*graph_of(lstm))
    copy = node.clone()
    copy.set_attrs({**node.attr_values(), "body": NameAttrList("gone")})
    assert recognised(copy, library) is None


def test_another_op_is_no_loop() -> None:
    node, library = loop_of(*graph_of(lstm))
    assert recognised(node.inputs[0][0], library) is None


def test_a_description_names_every_loop_variable_once() -> None:
    node, library = loop_of(*graph_of(lstm))
    loop = recognise(node, library)
    (cell,) = loop.cells
    states = [index for index in (cell.hidden, cell.cell) if index is not None]
    lists = [each.index for each in loop.lists]
    found = [*states, *lists, *loop.counters, *loop.invariants]
    assert sorted(found) == list(range(len(node.inputs)))
    assert [each.name for each in cell.activations] == ["Sigmoid", "Tanh", "Tanh"]
    assert [counter for counter, _ in loop.limits] == list(loop.counters)
