"""Programs written for tf.compat.v1, with the import replaced, give TensorFlow's results."""

import numpy as np
import pytest

import runtime.client as tf
from runtime.foundation.errors import (
    InvalidArgumentError,
)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def values(*tensors, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [np.asarray(each).tolist() for each in session.run(list(tensors), feeds)]


def test_a_layer_in_scopes(graph):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with tf.variable_scope("layer", initializer=tf.ones_initializer()):
        weights = tf.get_variable("weights", [3, 2])
        bias = tf.get_variable("bias", [2], initializer=tf.constant_initializer([1.0, -100.0]))
        y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weights), bias), name="y")
    total = tf.reduce_sum(y, axis=1, keepdims=True)
    assert y.shape == [None, 2]
    assert total.get_shape().as_list() == [None, 1]
    assert (y.name, y.op.inputs[0].op.type) == ("layer/y:0", "BiasAdd")
    assert graph.get_operation_by_name("layer/MatMul").get_attr("transpose_a") is False
    assert values(y, total, feeds={x: [[1, 2, 3]]}) == [[[7, 0]], [[7]]]


def test_names_come_from_the_functions():
    a = tf.constant([1.0, 2.0])
    found = [
        tf.add(a, a), tf.multiply(a, 2.0), tf.reduce_mean(a), tf.concat([a, a], 0),
        tf.stack([a, a]), tf.cast(a, tf.int32), tf.zeros([2]), tf.transpose(a), a / 2,
        tf.divide(a, 2.0), tf.range(3), tf.one_hot([0], 2), tf.random_uniform([2]),
    ]  # fmt: skip
    assert [tensor.name for tensor in found] == [
        "Add:0", "Mul:0", "Mean:0", "concat:0", "stack:0", "Cast:0", "zeros:0", "transpose:0",
        "truediv:0", "truediv_1:0", "range:0", "one_hot:0", "random_uniform:0",
    ]  # fmt: skip


def test_arrays():
    z = tf.constant([1.0, 2.0, 3.0])
    m = tf.constant([[1, 5, 2], [7, 0, 3]])
    cases = [
        (tf.stack([z, z], axis=1), [[1, 1], [2, 2], [3, 3]]),
        (tf.split(z, 3)[1], [2]),
        (tf.split(z, [1, 2])[1], [2, 3]),
        (tf.unstack(z)[2], 3),
        (tf.where(z > 1, z, -z), [-1, 2, 3]),
        (tf.where(z > 1), [[1], [2]]),
        (tf.one_hot([0, 2], 3), [[1, 0, 0], [0, 0, 1]]),
        (tf.expand_dims(z, 0), [[1, 2, 3]]),
        (tf.squeeze(z[tf.newaxis]), [1, 2, 3]),
        (tf.tile(z, [2]), [1, 2, 3, 1, 2, 3]),
        (tf.gather(z, [2, 0]), [3, 1]),
        (tf.gather(m, [0, 2], axis=1), [[1, 2], [7, 3]]),
        (tf.transpose(m), [[1, 7], [5, 0], [2, 3]]),
        (tf.zeros_like(m), [[0, 0, 0], [0, 0, 0]]),
        (tf.ones_like(m, tf.float32), [[1, 1, 1], [1, 1, 1]]),
        (tf.fill([2], 9), [9, 9]),
        (tf.shape(m), [2, 3]),
        (tf.rank(m), 2),
        (tf.size(m), 6),
        (tf.pad(z, [[1, 2]]), [0, 1, 2, 3, 0, 0]),
        (tf.pad(z, [[1, 1]], "REFLECT"), [2, 1, 2, 3, 2]),
        (tf.slice(m, [0, 1], [-1, 2]), [[5, 2], [0, 3]]),
        (tf.boolean_mask(z, [True, False, True]), [1, 3]),
        (tf.sequence_mask([1, 3], 3), [[True, False, False], [True, True, True]]),
        (tf.reverse(z, [0]), [3, 2, 1]),
        (tf.reshape(m, [-1, 2]), [[1, 5], [2, 7], [0, 3]]),
        (tf.concat([m, m], 1), [[1, 5, 2, 1, 5, 2], [7, 0, 3, 7, 0, 3]]),
    ]
    assert values(*(tensor for tensor, _ in cases)) == [expected for _, expected in cases]
    for tensor, expected in cases:
        assert tensor.shape.is_compatible_with(np.shape(expected)), tensor


def test_arithmetic():
    m = tf.constant([[1, 5, 2], [7, 0, 3]])
    f = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    cases = [
        (tf.subtract(m, 1), [[0, 4, 1], [6, -1, 2]]),
        (tf.argmax(m, axis=1), [1, 0]),
        (tf.argmin(m), [0, 1, 0]),
        (tf.reduce_max(m, 1), [5, 7]),
        (tf.reduce_min(m), 0),
        (tf.reduce_prod(m, [0, 1]), 0),
        (tf.reduce_any(m > 6, 0), [True, False, False]),
        (tf.reduce_mean(f, 0), [2, 3]),
        (tf.matmul(f, f, transpose_b=True), [[5, 11], [11, 25]]),
        (tf.matmul(tf.ones([2, 1, 2]), tf.ones([2, 2, 1])), [[[2]], [[2]]]),
        (tf.divide(tf.constant(7), 2), 3.5),
        (tf.div(tf.constant(7), 2), 3),
        (tf.floordiv(tf.constant(-7), 2), -4),
        (tf.mod(tf.constant(-7), 3), 2),
        (tf.range(1, 8, 3), [1, 4, 7]),
        (tf.range(0.0, 1.0, 0.5), [0, 0.5]),
        (tf.cumsum(m, 1), [[1, 6, 8], [7, 7, 10]]),
        (tf.clip_by_value(m, 1, 5), [[1, 5, 2], [5, 1, 3]]),
        (tf.add_n([f, f]), [[2, 4], [6, 8]]),
        (tf.abs(tf.constant([-1.0, 2.0])), [1, 2]),
        (tf.math.square(tf.constant(3)), 9),
        (tf.add("a", tf.constant(["b", "c"])), [b"ab", b"ac"]),
        (tf.to_int32([1.7]), [1]),
        (tf.logical_xor([True, True], [True, False]), [False, True]),
        (tf.nn.softmax(tf.constant([[0.0, 0.0]])), [[0.5, 0.5]]),
        (tf.nn.top_k(m, 2).indices, [[1, 2], [0, 2]]),
        (tf.nn.embedding_lookup(f, [1]), [[3, 4]]),
        (tf.nn.moments(f, [0])[1], [1, 1]),
        (tf.nn.l2_normalize(tf.constant([3.0, 4.0])), pytest.approx([0.6, 0.8])),
        (
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0], logits=[[1.0, 1.0]]),
            pytest.approx([np.log(2)]),
        ),
        (
            tf.nn.softmax_cross_entropy_with_logits_v2(labels=[[0.0, 1.0]], logits=[[1.0, 1.0]]),
            pytest.approx([np.log(2)]),
        ),
        (
            tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0], logits=[0.0]),
            pytest.approx([np.log(2)]),
        ),
    ]
    assert values(*(tensor for tensor, _ in cases)) == [expected for _, expected in cases]


def test_images():
    images, filters = tf.ones([2, 5, 5, 3]), tf.ones([2, 2, 3, 4])
    convolved = tf.nn.conv2d(images, filters, strides=[1, 2, 2, 1], padding="SAME")
    pooled = tf.nn.max_pool(convolved, [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
    means = tf.nn.avg_pool(images, 5, 1, "VALID")
    assert (convolved.shape, pooled.shape) == ([2, 3, 3, 4], [2, 2, 2, 4])
    flat = tf.reshape(pooled, [-1, 16])
    assert flat.shape == [2, 16]
    found = values(convolved[0, :, :, 0], pooled[0, 0, 0], means[0, 0, 0])
    assert found == [[[12, 12, 6], [12, 12, 6], [6, 6, 3]], [12] * 4, [1, 1, 1]]


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
def test_arguments_that_do_not_fit(build, begins):
    with pytest.raises(ValueError, match=f"^{begins}"):
        build()


def test_functions_of_rows():
    numbers = tf.range(1, 6)
    pairs = tf.map_fn(lambda p: (p[0] + p[1], p[0] * p[1]), (numbers, numbers))
    assert values(
        tf.map_fn(lambda each: each * each, numbers),
        *pairs,
        tf.map_fn(lambda each: tf.cast(each, tf.float32) / 2, numbers, dtype=tf.float32),
        tf.foldl(lambda total, each: total * each, numbers),
        tf.foldr(lambda total, each: total - each, numbers),
        tf.foldl(lambda total, each: total + each, numbers, initializer=100),
        tf.scan(lambda total, each: total + each, numbers),
        tf.scan(lambda total, each: total + each, numbers, initializer=10, reverse=True),
    ) == [
        [1, 4, 9, 16, 25], [2, 4, 6, 8, 10], [1, 4, 9, 16, 25], [0.5, 1, 1.5, 2, 2.5], 120, -5, 115,
        [1, 3, 6, 10, 15], [25, 24, 22, 19, 15],
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"must be 1\+ dimensional Tensors, not scalars"):
        tf.map_fn(lambda each: each, tf.constant(1))


def test_the_first_condition_that_holds():
    n = tf.placeholder(tf.int32, [])
    chosen = tf.case(
        [(n < 1, lambda: tf.constant(1)), (n < 5, lambda: tf.constant(2))],
        default=lambda: tf.constant(3),
    )
    sure = tf.case([(n < 1, lambda: tf.constant(1)), (n < 5, lambda: tf.constant(2))])
    assert [values(chosen, feeds={n: number})[0] for number in (0, 4, 9)] == [1, 2, 3]
    assert values(sure, feeds={n: 4}) == [2]
    with pytest.raises(InvalidArgumentError, match="None of conditions evaluated as True"):
        values(sure, feeds={n: 9})
    with pytest.raises(TypeError, match="must be a tuple of"):
        tf.case([n < 1])


def test_an_assertion():
    n = tf.placeholder(tf.int32, [])
    with tf.control_dependencies([tf.Assert(n > 0, [n])]):
        checked = tf.identity(n)
    assert values(checked, feeds={n: 2}) == [2]
    with pytest.raises(InvalidArgumentError, match=r"assertion failed: \[-2\]"):
        values(checked, feeds={n: -2})


def test_dropout_and_random_numbers():
    tf.set_random_seed(3)
    ones = tf.ones([1000])
    kept, same = values(tf.nn.dropout(ones, rate=0.25), tf.nn.dropout(ones, rate=0))
    assert set(np.round(kept, 4)) == {0, np.float64(1.3333)}
    assert 600 < np.count_nonzero(kept) < 900
    assert same == [1] * 1000
    drawn = values(
        tf.random_uniform([100], 2, 5, tf.int32),
        tf.truncated_normal([100], 1.0, 0.1),
        tf.random_shuffle(tf.range(5)),
    )
    assert set(drawn[0]) == {2, 3, 4}
    assert all(0.8 <= each <= 1.2 for each in drawn[1])
    assert sorted(drawn[2]) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="Must specify maxval for integer dtype int32"):
        tf.random_uniform([1], dtype=tf.int32)


def test_types_print_as_tensorflows_do():
    with tf.device("/cpu:0"):
        tensor = tf.constant(1.0)
    assert str(tensor.dtype) == "<dtype: 'float32'>"
    assert str(tensor) == 'Tensor("Const:0", shape=(), dtype=float32, device=/device:CPU:0)'
    assert tf.float32.as_numpy_dtype is np.float32


def test_what_can_not_be_grouped():
    with pytest.raises(TypeError, match="'inputs' should be zero or more"):
        tf.group(3)
