"""Gradients of loops and branches of version 1 that TensorFlow built are TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import protos as pb
import runtime.client as tf
from tests.conformance.case import Answer, read_golden

RECORDED = read_golden("loop_gradients")


@pytest.mark.parametrize("name", RECORDED)
def test_gradients_are_tensorflows(name: str) -> None:
    graph_def, inputs, begun, expected = _parts(RECORDED[name][1][0])
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        xs = [graph.get_tensor_by_name(f"x{index}:0") for index in range(len(inputs))]
        ys = [graph.get_tensor_by_name(f"y{index}:0") for index in range(len(begun))]
        found = tf.gradients(ys, xs, [tf.constant(each) for each in begun])
        ours = session.run([*ys, *found], dict(zip(xs, inputs, strict=True)))
    for one, other in zip(ours, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, 1e-4, 1e-5 * float(np.abs(other).max(initial=1)))


def _parts(answer: Answer) -> tuple[pb.GraphDef, Any, Any, Any]:
    """(graph, inputs, gradients of the results, results and gradients of the inputs)"""
    forward, counts, *arrays = answer.values
    ends = np.cumsum(counts)
    graph_def = pb.GraphDef.FromString(forward.item())
    return graph_def, arrays[: ends[0]], arrays[ends[0] : ends[1]], arrays[ends[1] :]
