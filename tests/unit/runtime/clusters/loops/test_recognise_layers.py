"""The layers of Keras are recognised, so that a change of Keras's graphs shows."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import SessionOptions, new_session
from runtime.clusters.emitters import emitters_for
from runtime.clusters.loops.recognise import recognised
from runtime.clusters.partition import partition
from tests.unit.runtime.clusters.loops.recurrent_layers import (
    INITIALIZE,
    loops_of,
    names,
    optimised,
    read,
)

# name of a layer, without that of the Keras release → the cells of its loops
CELLS = {
    "lstm": ["LSTM"],
    "lstm_states": ["LSTM"],
    "lstm_any_steps": ["LSTM"],
    "lstm_backwards": ["LSTM"],
    "lstm_bidirectional": ["LSTM", "LSTM"],
    "lstm_without_bias": ["LSTM"],
    "lstm_without_forget_bias": ["LSTM"],
    "lstm_hard": ["LSTM"],
    "lstm_relu": ["LSTM"],
    "lstm_elu_softsign": ["LSTM"],
    "lstm_linear": ["LSTM"],
    "lstm_dropout": ["LSTM"],
    "lstm_masked": [],
    "lstm_encoder_decoder": ["LSTM", "LSTM"],
    "gru": ["GRU"],
    "gru_states": ["GRU"],
    "gru_reset_before": ["GRU"],
    "gru_reset_before_without_bias": ["GRU"],
    "gru_reset_before_dropout": ["GRU"],
    "gru_without_bias": ["GRU"],
    "gru_hard": ["GRU"],
    "gru_dropout": ["GRU"],
    "gru_bidirectional": ["GRU", "GRU"],
    "simple": ["RNN"],
    "simple_relu_states": ["RNN"],
    "simple_hard_without_bias": ["RNN"],
    "stacked": ["GRU", "LSTM", "RNN"],
    "cells": ["GRU", "LSTM", "RNN"],
}


def test_every_layer_is_expected() -> None:
    assert {name.removesuffix("_keras_2") for name in names()} == set(CELLS)
    assert len(names()) > 30


@pytest.mark.parametrize("name", names())
def test_cells(name: str) -> None:
    layer = read(name)
    step, library = optimised(layer.graph, layer.feeds, layer.answers)
    found = [recognised(node, library) for node in loops_of(step)]
    cells = [cell.kind.value for loop in found if loop is not None for cell in loop.cells]
    assert sorted(cells) == CELLS[name.removesuffix("_keras_2")]


@pytest.mark.parametrize("name", names())
def test_a_recognised_loop_is_in_one_cluster_with_its_lists(name: str) -> None:
    layer = read(name)
    step, library = optimised(layer.graph, layer.feeds, layer.answers)
    clusters = partition(step, emitters_for(library))
    clustered = {node for cluster in clusters for node in cluster.nodes}
    lists = {node for node in step.nodes if node.op.startswith("TensorList")}
    loops = set(loops_of(step))
    assert loops
    assert clustered & (loops | lists) == (set() if name == "lstm_masked" else loops | lists)


@pytest.mark.parametrize("name", names())
def test_answers_with_clusters(name: str) -> None:
    layer = read(name)
    session = new_session(SessionOptions(config=pb.ConfigProto(), clusters="force"))
    session.create(layer.graph)
    session.run({}, [], [INITIALIZE])
    for _ in range(2):
        values = session.run(layer.feeds, list(layer.answers))
        for value, answer in zip(values, layer.answers.values(), strict=True):
            got = np.asarray(value)
            assert got.shape == answer.shape
            # TensorFlow's and numpy's answers differ by up to 4e-7 of the largest magnitude.
            np.testing.assert_allclose(got, answer, rtol=0, atol=8e-7 * np.abs(answer).max())
    session.close()
