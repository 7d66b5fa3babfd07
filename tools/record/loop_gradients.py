"""Record TensorFlow's gradients of loops and branches of version 1.

Run in an environment that has tensorflow, from the root of the repository:

    python tools/record/loop_gradients.py

TensorFlow differentiates such loops only in the program that built them, so TensorFlow builds the
graphs here, and their GraphDefs are recorded with the answers. The file is
tests/conformance/golden/loop_gradients.pb.gz, which tests/gradients/test_loops.py reads.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from tools.record.cases import plain_config  # isort: skip # sets TensorFlow's environment

import numpy as np
import tensorflow as tf

from tests.conformance.case import Answer, write_golden

v1 = tf.compat.v1
M = np.sin(np.arange(6, dtype=np.float32)).reshape(2, 3)
SQUARE = np.cos(np.arange(9, dtype=np.float32)).reshape(3, 3) / 2
ROWS = np.sin(np.arange(15, dtype=np.float32) * 1.3).reshape(5, 3)


def repeated(x):
    return v1.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, tf.sin(y * x) + x), (0, x))[1]


def never(x):
    return v1.while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, y * x), (0, x))[1]


def by_value(x):
    return v1.while_loop(lambda y: tf.reduce_sum(y) < 40, lambda y: y * 1.5 + 1, (x,))


def recurrent(x, w):
    """One variable feeds the other, which alone leaves; one leaves, but is not used."""

    def step(i, state, total, unused):
        state = tf.tanh(tf.matmul(state, w) + x)
        return i + 1, state, total + tf.reduce_sum(state * state, 0), unused * state

    return v1.while_loop(lambda i, *_: i < 3, step, (0, x, tf.zeros([3]), x))[2]


def mapped(x):
    return v1.map_fn(lambda row: tf.cumsum(row) * row, x)


def scanned(x):
    return v1.scan(lambda total, row: tf.tanh(total * row + 1), x)


def folded(x, y):
    return v1.foldl(lambda total, row: total * row + tf.reduce_sum(y, 0), x)


def sequence(x, w):
    """A recurrent layer with rows of several lengths, which writes its outputs."""
    lengths = tf.constant([4, 2, 5])
    inputs = tf.TensorArray(tf.float32, 5).unstack(x)
    outputs = tf.TensorArray(tf.float32, 5)

    def step(time, state, outputs):
        new = tf.tanh(tf.expand_dims(inputs.read(time), 1) * state + tf.matmul(state, w))
        state = tf.where(tf.repeat((time < lengths)[:, None], 3, 1), new, state)
        return time + 1, state, outputs.write(time, state)

    _, last, outputs = v1.while_loop(
        lambda time, *_: time < 5, step, (0, tf.ones([3, 3]) * w, outputs)
    )
    return [last, outputs.stack()]


def branching(x, w):
    def step(i, y):
        even = tf.equal(i % 2, 0)
        return i + 1, tf.cond(even, lambda: tf.sin(y) * w, lambda: tf.matmul(y, SQUARE) + x)

    return v1.while_loop(lambda i, y: i < 5, step, (0, x))[1]


def deep_branches(x):
    def step(i, y):
        def inner():
            z = tf.exp(-y)
            return tf.cond(tf.equal(i, 3), lambda: z * z * x, lambda: tf.cos(z) * y)

        return i + 1, tf.cond(i > 1, inner, lambda: y * y * 0.5)

    return v1.while_loop(lambda i, y: i < 5, step, (0, x))[1]


def nested(x, w):
    def step(i, y):
        def inside(j, z):
            return j + 1, tf.sin(tf.matmul(z, w)) + y

        return i + 1, v1.while_loop(lambda j, z: j < i, inside, (0, y * x))[1]

    return v1.while_loop(lambda i, y: i < 4, step, (0, x))[1]


def thrice_nested(x):
    def third(i, j):
        return lambda k, u: (k + 1, tf.tanh(u * x) + tf.cast(i + j, tf.float32))

    def second(i):
        return lambda j, z: (
            j + 1,
            v1.while_loop(lambda k, u: k < 2, third(i, j), (0, z))[1] * z,
        )

    def first(i, y):
        return i + 1, v1.while_loop(lambda j, z: j < 2, second(i), (0, y))[1]

    return v1.while_loop(lambda i, y: i < 2, first, (0, x))[1]


def nested_in_a_branch(x):
    def step(i, y):
        def loop():
            inside = v1.while_loop(lambda j, z: j < 2, lambda j, z: (j + 1, tf.sin(z) * y), (0, y))
            return inside[1]

        return i + 1, tf.cond(tf.equal(i, 1), lambda: y + x, loop)

    return v1.while_loop(lambda i, y: i < 3, step, (0, x))[1]


def in_a_branch(taken):
    def body(x):
        pred = v1.placeholder_with_default(taken, [], "pred")
        return tf.cond(pred, lambda: repeated(x) * 2.0, lambda: x * x)

    return body


def random_numbers(x):
    def step(i, y):
        return i + 1, y * v1.random_uniform([2, 3], seed=7) + x

    v1.set_random_seed(5)
    return v1.while_loop(lambda i, y: i < 3, step, (0, x))[1]


def growing(x):
    def step(i, y):
        return i + 1, tf.concat([y * y[:1], x], 0)

    x = v1.placeholder_with_default(x, [None, 3])
    shapes = (tf.TensorShape([]), tf.TensorShape([None, 3]))
    return tf.reduce_sum(v1.while_loop(lambda i, y: i < 3, step, (0, x), shapes)[1], 0)


def rows(x):
    def step(i, y):
        return i + 1, y * tf.gather(x, [i, i + 2, 0])

    return v1.while_loop(lambda i, y: i < 3, step, (0, tf.ones([3, 3])))[1]


def swapped(x, y):
    """The variables change places."""
    return v1.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b, a * b), (0, x, y))[1:]


def complex_numbers(x):
    return v1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x + y), (0, x))[1]


CASES = {
    "repeated": (repeated, M),
    "never": (never, M),
    "by_value": (by_value, M),
    "recurrent": (recurrent, M, SQUARE),
    "mapped": (mapped, M),
    "scanned": (scanned, ROWS),
    "folded": (folded, ROWS, M),
    "sequence": (sequence, ROWS, SQUARE),
    "branching": (branching, M, M[:1]),
    "deep_branches": (deep_branches, M),
    "nested": (nested, M, SQUARE),
    "thrice_nested": (thrice_nested, M),
    "nested_in_a_branch": (nested_in_a_branch, M),
    "in_a_branch_taken": (in_a_branch(True), M),
    "in_a_branch_not_taken": (in_a_branch(False), M),
    "random_numbers": (random_numbers, M),
    "growing": (growing, M),
    "rows": (rows, ROWS),
    "swapped": (swapped, M, 1 - M),
    "complex_numbers": (complex_numbers, (M + 1j * M[::-1]).astype(np.complex64)),
}


def answer(body, *arrays) -> Answer:
    """GraphDef, numbers of inputs and results, inputs, gradients of results, results, gradients."""
    with tf.Graph().as_default() as graph:
        xs = [
            v1.placeholder(array.dtype, array.shape, f"x{index}")
            for index, array in enumerate(arrays)
        ]
        results = body(*xs)
        ys = list(results) if isinstance(results, list | tuple) else [results]
        ys = [tf.identity(y, f"y{index}") for index, y in enumerate(ys)]
        forward = graph.as_graph_def().SerializeToString(deterministic=True)
        fed = dict(zip(xs, arrays, strict=True))
        begun = [tf.ones_like(y) * 1.5 - 0.25 * tf.sin(y) for y in ys]
        with v1.Session(config=plain_config()) as session:
            begun = session.run(begun, fed)
        found = v1.gradients(ys, xs, [tf.constant(each) for each in begun])
        with v1.Session(config=plain_config()) as session:  # with the first random numbers again
            values = session.run([*ys, *map(tf.convert_to_tensor, found)], fed)
    counts = np.array([len(arrays), len(ys)])
    return Answer((np.array(forward, object), counts, *arrays, *begun, *map(np.asarray, values)))


if __name__ == "__main__":
    v1.disable_eager_execution()
    v1.disable_control_flow_v2()
    recorded = {}
    for name, case in CASES.items():
        try:
            recorded[name] = (name, (answer(*case),))
        except Exception as error:
            raise RuntimeError(name) from error
    write_golden("loop_gradients", recorded)
    print(f"{len(recorded)} cases")
