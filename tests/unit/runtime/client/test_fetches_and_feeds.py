"""Fetch structures and feeds: facts 132 to 136."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from runtime.client import (
    Graph,
    InaccessibleTensorError,
    Session,
    SparseTensor,
    SparseTensorValue,
    Variable,
    constant,
    float32,
    identity,
    int32,
    no_op,
    placeholder,
    run_plans,
    string,
    uint8,
)

Pair = collections.namedtuple("Pair", ["left", "right"])


class Program:
    """A graph with elements of every kind, and a session of it."""

    def __init__(self):
        self.graph = Graph()
        with self.graph.as_default():
            self.x = placeholder(float32, [None, 3], name="x")
            self.u = placeholder(uint8, [], name="u")
            self.i = placeholder(int32, [], name="i")
            self.s = placeholder(string, name="s")
            self.a = constant(2.0, name="a")
            self.b = identity(self.a, name="b")
            self.read = identity(self.s, name="read")
            self.hidden = constant(1.0, name="Const_1")
            self.unfed = constant(1.0, name="unfeed")
            self.noop = no_op(name="noop")
            self.variable = Variable(3.0, name="v")
            self.sparse = SparseTensor([[0, 1]], [3.0], [2, 2])
        self.graph.prevent_fetching(self.hidden.op)
        self.graph.prevent_feeding(self.unfed)
        self.session = Session(graph=self.graph)
        self.run = self.session.run


@pytest.fixture(scope="module")
def program():
    return Program()


def test_values_come_in_the_structure_of_the_fetches(program):
    a, b, run = program.a, program.b, program.run
    value = run(a)
    assert type(value) is np.float32
    assert value == 2
    assert run(program.noop) is None
    assert run("a") is None  # the operation
    assert run("a:0") == run(b"a:0") == 2
    assert run([a, b]) == [2, 2]
    assert run((a, [b, ("noop",)])) == (2, [2, (None,)])
    assert run(Pair(a, b)) == Pair(2, 2)
    assert run({"p": a, "q": [b]}) == {"p": 2, "q": [2]}
    ordered = run(collections.OrderedDict([("z", a), ("y", b)]))
    assert type(ordered) is collections.OrderedDict
    assert list(ordered) == ["z", "y"]
    assert type(run(collections.defaultdict(list, q=a))) is collections.defaultdict
    assert [run([]), run(()), run({})] == [[], (), {}]
    program.run(program.variable.initializer)
    assert run(program.variable) == 3


def test_sparse_tensors_come_as_their_values(program):
    value = program.run(program.sparse)
    assert isinstance(value, SparseTensorValue)
    assert [part.tolist() for part in value] == [[[0, 1]], [3.0], [2, 2]]
    fed = SparseTensorValue(np.array([[1, 1]]), np.array([4.0]), np.array([3, 3]))
    again = program.run(program.sparse, {program.sparse: fed})
    assert again.values.tolist() == [4.0]


@pytest.mark.parametrize(
    ("fetch", "kind", "message"),
    [
        (None, TypeError, 'Argument `fetch` = None has invalid type "NoneType". Cannot be None'),
        (
            [None],
            TypeError,
            'Argument `fetch` = None has invalid type "NoneType". Cannot be None',
        ),
        (
            1,
            TypeError,
            'Argument `fetch` = 1 has invalid type "int" must be a string or Tensor. (Can not '
            "convert a int into a Tensor or Operation.)",
        ),
        (
            {"k": 3.5},
            TypeError,
            'Argument `fetch` = 3.5 has invalid type "float" must be a string or Tensor. (Can not '
            "convert a float into a Tensor or Operation.)",
        ),
        (
            "zz",
            ValueError,
            "Argument `fetch` = zz cannot be interpreted as a Tensor. (\"The name 'zz' refers to "
            'an Operation not in the graph.")',
        ),
        (
            "zz:0",
            ValueError,
            "Argument `fetch` = zz:0 cannot be interpreted as a Tensor. (\"The name 'zz:0' refers "
            "to a Tensor which does not exist. The operation, 'zz', does not exist in the "
            'graph.")',
        ),
        (
            "a:5",
            ValueError,
            "Argument `fetch` = a:5 cannot be interpreted as a Tensor. (\"The name 'a:5' refers "
            "to a Tensor which does not exist. The operation, 'a', exists but only has 1 "
            'outputs.")',
        ),
        (
            "a:b",
            ValueError,
            "Argument `fetch` = a:b cannot be interpreted as a Tensor. (The name 'a:b' looks a "
            "like a Tensor name, but is not a valid one. Tensor names must be of the form "
            '"<op_name>:<output_index>".)',
        ),
        (
            "noop:0",
            ValueError,
            "Argument `fetch` = noop:0 cannot be interpreted as a Tensor. (\"The name 'noop:0' "
            "refers to a Tensor which does not exist. The operation, 'noop', exists but only has "
            '0 outputs.")',
        ),
    ],
    ids=repr,
)
def test_what_can_not_be_fetched(program, fetch, kind, message):
    with pytest.raises(kind) as error:
        program.run(fetch)
    assert str(error.value) == message


def test_a_tensor_of_another_graph_can_not_be_fetched(program):
    with Graph().as_default():
        other = constant(1.0, name="y")
    with pytest.raises(ValueError) as error:
        program.run(other)
    shown = 'Tensor("y:0", shape=(), dtype=float32)'
    assert str(error.value) == (
        f"Argument `fetch` = {shown} cannot be interpreted as a Tensor. (Tensor {shown} is not an "
        "element of this graph.)"
    )


def test_operations_marked_as_not_fetchable(program):
    with pytest.raises(InaccessibleTensorError) as error:
        program.run(program.hidden)
    assert str(error.value) == (
        "Operation Const_1 has been marked as not fetchable. Typically this happens when it is "
        "defined in another function or code block. Use return values, explicit Python locals or "
        "TensorFlow collections to access it."
    )


def test_the_same_tensor_twice_is_the_same_array(program):
    values = program.run([program.sparse.values, [program.sparse.values]])
    assert values[0] is values[1][0]


def test_a_fed_tensor_that_is_fetched_is_the_fed_array(program):
    fed = np.ones((2, 3), np.float32)
    assert program.run(program.x, {program.x: fed}) is fed
    fetched = program.run([program.x, program.b], {program.x: fed})
    assert fetched[0] is fed


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("u", np.int64(300), np.array(44, np.uint8)),
        ("u", 3.5, np.array(3, np.uint8)),
        ("i", 1.7, np.array(1, np.int32)),
        ("i", True, np.array(1, np.int32)),
        ("x", [[1, 2, 3]], np.array([[1, 2, 3]], np.float32)),
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


def test_sessions_of_one_graph_have_state_of_their_own():
    with Graph().as_default():
        variable = Variable(1.0)
        more = variable.assign_add(1.0)
        one, other = Session(), Session()
        one.run(variable.initializer)
        assert one.run(more) == 2
        other.run(variable.initializer)
        assert [one.run(variable), other.run(variable)] == [2, 1]


def test_plans_of_runs_are_kept_and_stay_true():
    with Graph().as_default() as graph, Session() as session:
        x = placeholder(float32, [], name="x")
        y = x + 1
        plans = session._plans
        assert session.run([y, "x:0"], {x: 1.0}) == [2, 1]
        assert session.run((y, "x:0"), {x: 1.0}) == (2, 1)
        assert session.run(y, {y: 5.0}) == 5
        assert session.run(y, {x: 2.0}) == 3
        assert plans.find(y, {x: None}) is plans.find(y, {x: None})
        assert plans.find(y, {x: None}) is not plans.find(y, {})
        graph.prevent_fetching(y.op)
        with pytest.raises(InaccessibleTensorError):
            session.run(y, {x: 2.0})


def test_only_so_many_plans_are_kept():
    with Graph().as_default(), Session() as session:
        tensors = [constant(float(index)) for index in range(run_plans.CAPACITY + 3)]
        assert [session.run(tensor) for tensor in tensors] == list(range(len(tensors)))
        assert len(session._plans._plans) == 3
