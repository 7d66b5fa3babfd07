"""Loops as operations of a model give what the numpy kernels give, or leave it to these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import protos as pb
import runtime.client as tf
from runtime.api import DirectSession, SessionOptions, new_session
from runtime.clusters import backend
from runtime.clusters.backend import CompiledModel, UncheckedRunError
from tests.unit.runtime.clusters.emitted import assert_close
from tests.unit.runtime.clusters.loops import recurrent_layers
from tests.unit.runtime.clusters.loops.recurrent_graphs import (
    UNITS,
    WIDTH,
    Cell,
    Options,
    X,
    graph_of,
    inputs,
    lstm,
    run,
    weights,
)

ONE = Options(states=1)
KERNEL, RECURRENT = weights(WIDTH, UNITS, seed=6), weights(UNITS, UNITS, seed=7)


class Runs:
    """How many runs of models ended, by kind of end."""

    def __init__(self) -> None:
        self.good = 0
        self.refused = 0


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    """Counts the runs of models during a test."""
    counts = Runs()
    unchanged = CompiledModel.run

    def counted(self: CompiledModel, *arguments: Any) -> list[np.ndarray]:
        try:
            outputs = unchanged(self, *arguments)
        except UncheckedRunError:
            counts.refused += 1
            raise
        counts.good += 1
        return outputs

    monkeypatch.setattr(backend.CompiledModel, "run", counted)
    yield counts


def compare(cell: Cell, options: Options, x: np.ndarray, tolerance: float = 1e-6) -> None:
    """Compare the values with clusters and without."""
    graph, fetches = graph_of(cell, options)
    got = run(graph, fetches, {X: x}, "force")
    for value, expected in zip(got, run(graph, fetches, {X: x}, "off"), strict=True):
        if np.isfinite(expected).all():
            assert_close(value, expected, tolerance)
        else:
            np.testing.assert_array_equal(np.isnan(value), np.isnan(expected))


def loops_in_clusters(cell: Cell, options: Options, x: np.ndarray) -> list[str]:
    """The recurrent operations in the models of a graph."""
    graph, fetches = graph_of(cell, options)
    found: list[str] = []
    unchanged = CompiledModel.__init__

    def noted(self: CompiledModel, model: Any, *arguments: Any) -> None:
        nodes = pb.onnx.ModelProto.FromString(model.message).graph.node
        found.extend(each.op_type for each in nodes if each.op_type in ("LSTM", "GRU", "RNN"))
        unchanged(self, model, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledModel, "__init__", noted)
        run(graph, fetches, {X: x}, "force")
    return found


def simple(activation: Callable[[Any], Any]) -> Cell:
    def cell(x: Any, states: Sequence[Any]) -> Sequence[Any]:
        (h,) = states
        return (activation(tf.matmul(x, KERNEL) + tf.matmul(h, RECURRENT)),)

    return cell


def gru(candidate: Callable[[Any], Any]) -> Cell:
    def cell(x: Any, states: Sequence[Any]) -> Sequence[Any]:
        (h,) = states
        gates = tf.matmul(x, weights(WIDTH, 2 * UNITS)) + tf.matmul(h, weights(UNITS, 2 * UNITS))
        z, r = tf.split(tf.sigmoid(gates), 2, axis=1)
        new = candidate(tf.matmul(x, KERNEL) + r * (tf.matmul(h, RECURRENT) + 0.5))
        return (z * h + (1.0 - z) * new,)

    return cell


@pytest.mark.parametrize(("batch", "steps"), [(1, 1), (1, 9), (3, 5)])
@pytest.mark.parametrize("writes_last", [False, True])
def test_sizes(batch: int, steps: int, writes_last: bool, runs: Runs) -> None:
    compare(lstm, Options(writes_last=writes_last), inputs(batch, steps))
    assert runs.good == 1


@pytest.mark.parametrize(
    "activation",
    [
        tf.tanh,
        tf.sigmoid,
        tf.nn.relu,
        tf.nn.elu,
        tf.nn.softsign,
        tf.nn.softplus,
        lambda x: tf.ops.LeakyRelu(x, alpha=0.1),
        lambda x: tf.nn.relu6(x + 3.0) / 6.0,
        lambda x: tf.maximum(tf.minimum(x * 0.2 + 0.5, 1.0), 0.0),
        lambda x: tf.ops.ClipByValue(x * 0.2 + 0.5, 0.0, 1.0),
        lambda x: x * 0.25,
    ],
)
def test_activations(activation: Callable[[Any], Any]) -> None:
    x = inputs() * 0.5
    for cell, kind in ((simple(activation), "RNN"), (gru(activation), "GRU")):
        compare(cell, ONE, x)
        assert loops_in_clusters(cell, ONE, x) == [kind]


def test_one_model_serves_all_batches_and_lengths(runs: Runs) -> None:
    graph, fetches = graph_of(lstm)
    session = new_session(SessionOptions(config=pb.ConfigProto(), clusters="force"))
    session.create(graph)
    for batch, steps in ((2, 5), (4, 5), (2, 8)):
        x = inputs(batch, steps)
        expected = run(graph, fetches, {X: x}, "off")
        for value, wanted in zip(session.run({X: x}, fetches), expected, strict=True):
            assert_close(np.asarray(value), wanted, 1e-6)
    assert runs.good == 3


# Inputs that the engine would get wrong, or that end the process


@pytest.mark.parametrize(("batch", "steps"), [(0, 5), (2, 0), (0, 0)])
def test_empty_inputs_are_left_to_numpy(batch: int, steps: int, runs: Runs) -> None:
    options = Options(states=1, initial=lambda batch, _: tf.fill(tf.stack([batch, UNITS]), 0.5))
    graph, fetches = graph_of(simple(tf.tanh), options)
    session = new_session(SessionOptions(config=pb.ConfigProto(), clusters="force"))
    session.create(graph)
    for sizes in ((2, 5), (batch, steps)):
        x = inputs(*sizes)
        (state,) = session.run({X: x}, fetches[1:])
        (expected,) = run(graph, fetches[1:], {X: x}, "off")
        assert_close(np.asarray(state), expected, 1e-6)
    assert (runs.good, runs.refused) == (1, 0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("cell", [lstm, simple(tf.tanh), gru(tf.tanh)])
def test_values_that_are_not_finite_are_left_to_numpy(cell: Cell, value: float, runs: Runs) -> None:
    x = inputs()
    x[1, 0] = value
    compare(cell, Options() if cell is lstm else ONE, x)
    assert (runs.good, runs.refused) == (0, 1)


def test_an_initial_state_that_is_not_finite_is_left_to_numpy(runs: Runs) -> None:
    options = Options(states=1, initial=lambda batch, _: tf.fill(tf.stack([batch, UNITS]), np.nan))
    compare(simple(tf.tanh), options, inputs())
    assert (runs.good, runs.refused) == (0, 1)


def test_states_that_overflow_are_left_to_numpy(runs: Runs) -> None:
    compare(simple(lambda x: tf.nn.relu(x * 1e9)), ONE, np.abs(inputs(2, 30)))
    assert (runs.good, runs.refused) == (0, 1)


def test_large_values_are_not() -> None:
    compare(lstm, Options(), inputs() * 1e6)


def test_weights_that_are_not_finite_are_left_to_numpy(runs: Runs) -> None:
    kernel = KERNEL.copy()
    kernel[0, 0] = np.nan

    def cell(x: Any, states: Sequence[Any]) -> Sequence[Any]:
        return (tf.tanh(tf.matmul(x, kernel) + tf.matmul(states[0], RECURRENT)),)

    compare(cell, ONE, inputs())
    assert (runs.good, runs.refused) == (0, 1)


def test_weights_of_a_cell_after_another_that_are_not_finite_are_left_to_numpy(runs: Runs) -> None:
    recurrent = RECURRENT.copy()
    recurrent[0, 0] = np.nan

    def cells(x: Any, states: Sequence[Any]) -> Sequence[Any]:
        first = tf.tanh(tf.matmul(x, KERNEL) + tf.matmul(states[0], RECURRENT))
        after = tf.matmul(first, RECURRENT) + tf.matmul(states[1], recurrent)
        return first, tf.tanh(after)

    compare(cells, Options(states=2, written=lambda states: states[1]), inputs())
    assert (runs.good, runs.refused) == (0, 1)


# Loops that only a run, or the shapes, tell from recurrent ones


@pytest.mark.parametrize(
    "options",
    [
        Options(states=1, limit=lambda steps: steps - 1),
        Options(states=1, limit=lambda steps: 3),
        Options(states=1, start=1),
        Options(states=1, length=lambda steps: steps + 1),
        Options(states=1, initial=lambda batch, _: tf.zeros([1, UNITS])),
    ],
)
def test_a_part_of_the_elements_stays_a_loop(options: Options) -> None:
    x = inputs()
    compare(simple(tf.tanh), options, x)
    assert loops_in_clusters(simple(tf.tanh), options, x) == []


def test_more_iterations_than_elements_are_an_error() -> None:
    graph, fetches = graph_of(simple(tf.tanh), Options(states=1, limit=lambda steps: steps + 1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Trying to access element 5"):
        run(graph, fetches, {X: inputs()}, "force")


def test_a_list_of_another_shape_is_an_error() -> None:
    graph, fetches = graph_of(lstm, Options(shape=(-1, UNITS + 1)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        run(graph, fetches, {X: inputs()}, "force")


def test_a_second_limit_that_is_larger() -> None:
    def below_both(time: Any, limit: Any) -> Any:
        return tf.ops.LogicalAnd(tf.ops.Less(time, limit), tf.ops.Less(time, 1000))

    # With open sizes 1000 could be the smaller limit, so the model is for 5 steps only.
    compare(lstm, Options(compares=below_both), inputs())
    assert loops_in_clusters(lstm, Options(compares=below_both), inputs()) == ["LSTM"]


# Weights that follow from variables


def test_weights_of_variables_are_those_of_each_run() -> None:
    layer = recurrent_layers.read("gru_reset_before_dropout")
    sessions: list[DirectSession] = []
    for clusters in ("force", "off"):
        session = new_session(SessionOptions(config=pb.ConfigProto(), clusters=clusters))
        assert isinstance(session, DirectSession)
        session.create(layer.graph)
        session.run({}, [], [recurrent_layers.INITIALIZE])
        sessions.append(session)
    assigns = [
        node
        for node in layer.graph.node
        if node.op == "AssignVariableOp" and node.attr["dtype"].type == pb.DT_FLOAT
    ]
    rng = np.random.default_rng(3)
    for node in assigns[:2]:
        forced, plain = ([*s.run(layer.feeds, list(layer.answers))] for s in sessions)
        assert_close(np.asarray(forced[0]), np.asarray(plain[0]), 1e-6)
        value = f"{node.input[1]}:0"
        shape = np.asarray(sessions[0].run({}, [value])[0]).shape
        new = rng.standard_normal(shape).astype(np.float32)
        for session in sessions:
            session.run({value: new}, [], [node.name])
    forced, plain = ([*s.run(layer.feeds, list(layer.answers))] for s in sessions)
    assert_close(np.asarray(forced[0]), np.asarray(plain[0]), 1e-6)
    assert not np.allclose(plain[0], next(iter(layer.answers.values())))
    for session in sessions:
        session.close()
