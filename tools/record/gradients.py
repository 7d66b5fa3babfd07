"""Record TensorFlow's gradients (tf.gradients) of the cases of tests/gradients.

Run in an environment that has tensorflow, from the root of the repository:

    python tools/record/gradients.py [family …]        # default: every family

This project's front end builds the graph of a case; TensorFlow imports it, differentiates it and
runs it without grappler. A case whose digest did not change keeps its recorded answer.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from tools.record.cases import plain_config  # isort: skip # sets TensorFlow's environment

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import map_ops  # registers the gradients of tensor maps

from tests.conformance.case import Answer, read_golden, write_golden
from tests.gradients.gradient_case import (
    GradientCase,
    cases_of,
    digest,
    families,
    feeds,
    forward_graph,
    has_gradient,
    weights,
)

v1 = tf.compat.v1
assert map_ops


def answer(case: GradientCase) -> Answer:
    ours, results, inputs = forward_graph(case)
    graph_def = v1.GraphDef.FromString(ours.as_graph_def().SerializeToString())
    with tf.Graph().as_default() as graph, v1.Session(config=plain_config()) as session:
        tf.import_graph_def(graph_def, name="")
        ys = [graph.get_tensor_by_name(each.name) for each in results]
        xs = [graph.get_tensor_by_name(each.name) for each in inputs]
        xs = [x for x in xs if has_gradient(x.dtype.as_numpy_dtype)]
        fed = feeds(case)
        for _ in range(case.order):
            ys = [y for y in ys if has_gradient(y.dtype.as_numpy_dtype)]
            begun = [tf.constant(weights(np.asarray(value))) for value in session.run(ys, fed)]
            found = v1.gradients(ys, xs, begun)
            ys = [tf.convert_to_tensor(dx) for dx in found if dx is not None]
        is_there = np.array([dx is not None for dx in found])
        return Answer((is_there, *map(np.asarray, session.run(ys, fed))))


def record(family: str) -> None:
    known = read_golden(f"gradients_{family}")
    fresh = {}
    for name, case in cases_of(family).items():
        now = digest(case)
        old = known.get(name)
        try:
            fresh[name] = old if old is not None and old[0] == now else (now, (answer(case),))
        except Exception as error:
            raise RuntimeError(f"{family}, case {name}") from error
    if fresh.keys() != known.keys() or fresh != known:
        write_golden(f"gradients_{family}", fresh)
    print(f"{family}: {len(fresh)} cases")


if __name__ == "__main__":
    v1.disable_eager_execution()
    v1.disable_control_flow_v2()  # with it, gradients of TensorArrays of version 3 fail
    for name in sys.argv[1:] or families():
        record(name)
