"""Record TensorFlow's answers to the conformance cases.

Run in an environment that has tensorflow, from the root of the repository:

    python tools/record/cases.py [family …]        # default: every family that changed

Each case runs in a new graph-mode session without grappler and with its inputs fed, so that no
constant folding replaces a kernel. Cases whose digest did not change keep their recorded answers.
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import numpy as np
import tensorflow as tf

from tests.conformance.case import Answer, Case, cases_of, families, read_golden, write_golden


def plain_config() -> tf.compat.v1.ConfigProto:
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config


def answers(case: Case, config: tf.compat.v1.ConfigProto | None = None) -> list[Answer]:
    graph = tf.Graph()
    given = tf.compat.v1.GraphDef.FromString(case.graph.SerializeToString())
    with graph.as_default():
        try:
            tf.import_graph_def(given, name="")
        except ValueError as error:  # shape inference rejected the graph
            return [Answer(code=3, message=str(error)) for _ in case.steps]
    result = []
    with tf.compat.v1.Session(graph=graph, config=config or plain_config()) as session:
        for step in case.steps:
            try:
                targets = [graph.get_operation_by_name(name) for name in step.targets]
                values, _ = session.run([list(step.fetches), targets], dict(step.feeds))
                result.append(Answer(tuple(map(as_array, values))))
            except tf.errors.OpError as error:
                result.append(Answer(code=error.error_code, message=runtime_text(error.message)))
    return result


def as_array(value: object) -> np.ndarray:
    """Return a fetched value as an array; bytes become an object, as kind `S` strips final NULs."""
    return np.asarray(value, object if isinstance(value, bytes) else None)


def runtime_text(message: str) -> str:
    """Return the runtime's message without the text that TensorFlow's Python front end adds."""
    if message.startswith("Graph execution error"):
        message = message.split("Node: ", 1)[-1].split("\n", 1)[-1]
    return message.split("\n\nOriginal stack trace", 1)[0]


def record(family: str) -> None:
    cases = cases_of(family)
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), f"{family}: case names are not unique"
    known = read_golden(family)
    fresh = {}
    for case in cases:
        old = known.get(case.name)
        if old is not None and old[0] == case.digest:
            fresh[case.name] = old
        else:
            fresh[case.name] = (case.digest, answers(case))
    if fresh.keys() != known.keys() or fresh != known:
        write_golden(family, fresh)
    failing = sum(any(answer.code for answer in steps) for _, steps in fresh.values())
    print(f"{family}: {len(cases)} cases, {failing} of them end in an error")


if __name__ == "__main__":
    tf.compat.v1.disable_eager_execution()
    for name in sys.argv[1:] or families():
        record(name)
