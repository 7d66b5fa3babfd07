"""Static shapes of results, and arguments whose shapes do not fit."""

from __future__ import annotations

import numpy as np
import pytest

import runtime.client as tf
from runtime.client import float32, ops, placeholder


def test_static_shapes_where_they_are_cheap(graph):
    x = placeholder(float32, [None, 3])
    assert (x + 1).shape == [None, 3]
    assert (x + np.ones((4, 1), np.float32)).shape == [4, 3]
    assert (x @ np.ones((3, 2), np.float32)).shape == [None, 2]
    assert ops.Relu(x).shape == [None, 3]
    assert ops.Sum(x, 0).shape == [3]
    assert ops.Cholesky(x).shape.rank is None


MISFITS = [
    (
        lambda: tf.matmul(tf.placeholder(tf.float32, [None, 3], name="x"), tf.ones([4, 1])),
        "Dimensions must be equal, but are 3 and 4 for '{{node MatMul}} = MatMul[T=DT_FLOAT, "
        "grad_a=false, grad_b=false, transpose_a=false, transpose_b=false](x, ones)' with input "
        "shapes: [?,3], [4,1].",
    ),
    (
        lambda: tf.ones([2]) + tf.ones([3]),
        "Dimensions must be equal, but are 2 and 3 for '{{node add}} = AddV2[T=DT_FLOAT](ones, "
        "ones_1)' with input shapes: [2], [3].",
    ),
    (
        lambda: tf.nn.bias_add(tf.ones([2, 3]), [1.0, 2.0]),
        "Dimensions must be equal, but are 3 and 2 for '{{node BiasAdd}} = BiasAdd[T=DT_FLOAT, "
        'data_format="NHWC"](ones, BiasAdd/bias)\' with input shapes: [2,3], [2].',
    ),
    (
        lambda: tf.stack([tf.ones([2]), tf.ones([3])]),
        "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2] and [3].\n\t"
        "From merging shape 0 with other shapes. for '{{node stack}} = Pack[N=2, T=DT_FLOAT, "
        "axis=0](ones, ones_1)' with input shapes: [2], [3].",
    ),
    (
        lambda: tf.transpose(tf.ones([2, 3]), [0]),
        "Dimension must be 2 but is 1 for '{{node transpose}} = Transpose[T=DT_FLOAT, "
        "Tperm=DT_INT32](ones, transpose/perm)' with input shapes: [2,3], [1].",
    ),
    (
        lambda: tf.where(tf.ones([2]) > 0, tf.ones([2]), tf.ones([3])),
        "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2] and [3]. for "
        "'{{node Select}} = Select[T=DT_FLOAT](Greater, ones_1, ones_2)' with input shapes: [2], "
        "[2], [3].",
    ),
]


@pytest.mark.parametrize(("build", "message"), MISFITS)
def test_shapes_that_do_not_fit_are_told_at_once(graph, build, message):
    with pytest.raises(ValueError, match=r"^Dimension") as error:
        build()
    assert str(error.value) == message
    refused = message.split("{{node ")[1].split("}}")[0]
    assert refused not in [operation.name for operation in graph.get_operations()]


@pytest.mark.parametrize(
    ("build", "begins"),
    [
        (lambda: tf.reshape(tf.ones([6]), [4]), "Cannot reshape a tensor with 6 elements to shape"),
        (lambda: tf.reshape(tf.ones([6]), [4, -1]), "Dimension size must be evenly divisible by 4"),
        (lambda: tf.reduce_sum(tf.ones([2]), 5), "Invalid reduction dimension 5 for input with 1"),
        (lambda: tf.expand_dims(tf.ones([2]), 5), r"dim 5 not in the interval \[-2, 1\]\."),
        (lambda: tf.argmax(tf.ones([2]), 3), r"Dimension \(3\) must be in the range \[-1, 1\)"),
        (lambda: tf.gather(tf.ones([2]), [0], axis=4), "Shape must be at least rank 5 but is rank"),
        (lambda: tf.ones([2, 3])[5], "slice index 5 of dimension 0 out of bounds"),
        (lambda: tf.ones([2, 3])[0, 1, 2], "Index out of range using input dim 2; input has only"),
        (lambda: tf.squeeze(tf.ones([2, 3]), 0), r"Can not squeeze dim\[0\], expected a dimension"),
        (lambda: tf.split(tf.ones([3]), 2), "Dimension size must be evenly divisible by 2 but is"),
        (lambda: tf.concat([tf.ones([2, 3]), tf.ones([2])], 0), "Shape must be rank 2 but is rank"),
        (lambda: tf.unstack(tf.placeholder(tf.float32)), "Cannot infer argument `num` from shape"),
        (lambda: tf.pad([1.0], [[1, 1]], "WRAP"), "Value of argument `mode` expected to be one of"),
        (lambda: tf.where([True], [1]), "x and y must both be non-None or both be None"),
        (
            lambda: tf.nn.conv2d(tf.ones([1, 4, 4, 3]), tf.ones([2, 2, 4, 1]), 1, "VALID"),
            r"Depth of input \(3\) is not a multiple of input depth of filter \(4\)",
        ),
    ],
)
def test_arguments_that_do_not_fit(graph, build, begins):
    with pytest.raises(ValueError, match=f"^{begins}"):
        build()
