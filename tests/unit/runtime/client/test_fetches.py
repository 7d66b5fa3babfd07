"""Fetch structures: facts 132, 133 and 136."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from runtime.client import Graph, InaccessibleTensorError, SparseTensorValue, constant

Pair = collections.namedtuple("Pair", ["left", "right"])


def test_values_come_in_the_structure_of_the_fetches(program):
    a, b, run = program.a, program.b, program.run
    value = run(a)
    assert type(value) is np.float32
    assert value == 2
    assert run(program.noop) is None
    assert run("a") is None  # the name of an operation
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
