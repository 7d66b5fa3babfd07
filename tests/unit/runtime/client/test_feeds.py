"""Feeds and the conversion of their values: facts 134 and 135."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.client import float32, placeholder


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("u", np.int64(300), np.array(44, np.uint8)),
        ("u", 3.5, np.array(3, np.uint8)),
        ("i", 1.7, np.array(1, np.int32)),
        ("i", True, np.array(1, np.int32)),
        ("x", [[1, 2, 3]], np.array([[1, 2, 3]], np.float32)),
        ("x", np.array([[1, 2, 3]], ">f4"), np.array([[1, 2, 3]], np.float32)),
    ],
    ids=repr,
)
def test_values_become_arrays_of_the_tensor_s_type(program, key, value, expected):
    tensor = getattr(program, key)
    fetched = program.run(tensor, {tensor: value})
    assert fetched.dtype == expected.dtype
    np.testing.assert_array_equal(fetched, expected)


def test_none_is_nan(program):
    with program.graph.as_default():
        any_shape = placeholder(float32)
    assert np.isnan(program.run(any_shape, {any_shape: None}))


@pytest.mark.parametrize(
    ("value", "expected"),
    [("é", "é".encode()), (b"a\0", b"a\0"), (["a", b"b\0"], [b"a", b"b\0"])],
)
def test_strings_are_bytes_with_their_zeros(program, value, expected):
    fetched = program.run(program.read, {program.s: value})
    if isinstance(value, list):
        assert fetched.dtype == object
        fetched = fetched.tolist()
    assert fetched == expected


@pytest.mark.parametrize(
    ("key", "value", "kind", "message"),
    [
        (
            "x:0",
            np.ones((2, 4)),
            ValueError,
            "Cannot feed value of shape (2, 4) for Tensor x:0, which has shape (None, 3)",
        ),
        (
            "u:0",
            300,
            TypeError,
            "Type of feed value 300 with type <class 'int'> is not compatible with Tensor type "
            "<class 'numpy.uint8'>. Try explicitly setting the type of the feed tensor to a "
            "larger type (e.g. int64).",
        ),
        (
            "i:0",
            1 << 40,
            TypeError,
            "Type of feed value 1099511627776 with type <class 'int'> is not compatible with "
            "Tensor type <class 'numpy.int32'>. Try explicitly setting the type of the feed "
            "tensor to a larger type (e.g. int64).",
        ),
        ("unfeed:0", 1.0, ValueError, "Tensor unfeed:0 may not be fed."),
        (
            "x",
            1,
            TypeError,
            "Cannot interpret feed_dict key as Tensor: The name 'x' refers to an Operation, not a "
            'Tensor. Tensor names must be of the form "<op_name>:<output_index>".',
        ),
        (
            "zz:0",
            1,
            TypeError,
            "Cannot interpret feed_dict key as Tensor: The name 'zz:0' refers to a Tensor which "
            "does not exist. The operation, 'zz', does not exist in the graph.",
        ),
        (
            1,
            1,
            TypeError,
            "Cannot interpret feed_dict key as Tensor: Can not convert a int into a Tensor.",
        ),
        (
            ("x:0", "u:0"),
            ([1, 2, 3],),
            ValueError,
            "Could not flatten dictionary. Key had 2 elements, but value had 3 elements. Key: "
            "['x:0', 'u:0'], value: [1, 2, 3].",
        ),
        (
            "x:0",
            [[1, 2, 3], [1, 2]],
            ValueError,
            "setting an array element with a sequence. The requested array has an inhomogeneous "
            "shape after 1 dimensions. The detected shape was (2,) + inhomogeneous part.",
        ),
    ],
    ids=str,
)
def test_what_can_not_be_fed(program, key, value, kind, message):
    with pytest.raises(kind) as error:
        program.run(program.b, {key: value})
    assert str(error.value) == message


def test_operations_and_tensors_as_feeds(program):
    with pytest.raises(TypeError) as error:
        program.run(program.b, {program.x.op: 1})
    assert str(error.value) == (
        "Cannot interpret feed_dict key as Tensor: Can not convert a Operation into a Tensor."
    )
    with pytest.raises(TypeError) as error:
        program.run(program.b, {program.x: program.a})
    assert str(error.value) == (
        "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python "
        "scalars, strings, lists, numpy ndarrays, or TensorHandles. For reference, the tensor "
        'object was Tensor("a:0", shape=(), dtype=float32) which was passed to the argument '
        '`feed_dict` with key Tensor("x:0", shape=(None, 3), dtype=float32).'
    )


def test_a_feed_dict_is_a_mapping(program):
    with pytest.raises(TypeError) as error:
        program.run(program.b, [1])
    assert str(error.value) == (
        "FlattenDictItems: 'dict' must be a dictionary or collection.Mapping type object, instead "
        "of 'list'."
    )


def test_keys_may_be_nested_tuples(program):
    values = program.run([program.u, program.i], {(program.u, (program.i,)): (1, (2,))})
    assert values == [1, 2]
