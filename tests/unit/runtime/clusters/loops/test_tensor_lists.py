"""Tensor lists in models: tensors of their elements, whose shapes are checked."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.clusters.dimensions import symbol
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.loops.tensor_lists import (
    as_list,
    check_elements,
    required_shape,
    tensor_list,
    whole_number,
)
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph
from tests.unit.runtime.clusters.emitted import emitted

B = symbol("b")


@pytest.mark.parametrize(
    ("required", "shape"), [(None, (B, 2)), ((-1, 2), (B, 2)), ((3, 2), (3, 2)), ((), ())]
)
def test_elements_that_fit(required: tuple[int, ...] | None, shape: tuple[object, ...]) -> None:
    check_elements(required, shape)  # type: ignore[arg-type] # parametrised


@pytest.mark.parametrize(
    ("required", "shape"), [((2, 2), (B, 2)), ((-1, 3), (B, 2)), ((-1,), (B, 2)), ((), (B,))]
)
def test_elements_that_may_not_fit(required: tuple[int, ...], shape: tuple[object, ...]) -> None:
    with pytest.raises(DeclinedError, match="elements of shape"):
        check_elements(required, shape)  # type: ignore[arg-type] # parametrised


def test_numbers_that_are_known() -> None:
    emission = Emission()
    assert whole_number(emission.constant(np.int32(3))) == 3
    assert whole_number(emission.size(B)) == B
    assert required_shape(emission.constant(np.int32([-1, 4]))) == (-1, 4)
    assert required_shape(emission.constant(np.int32(-1))) is None
    assert required_shape(emission.sizes([B, 4])) == (-1, 4)


def test_what_only_a_run_tells_is_declined() -> None:
    emission = Emission()
    value = emission.input(DataType.INT32, ())
    for read in (whole_number, required_shape, as_list):
        with pytest.raises(DeclinedError):
            read(value)
    with pytest.raises(DeclinedError):
        whole_number(emission.constant(np.float32(3)))


def test_a_vector_of_one_number_is_no_number() -> None:
    emission = Emission()
    for value in (emission.constant(np.int32([3])), emission.sizes([B])):
        with pytest.raises(DeclinedError, match="a number of shape"):
            whole_number(value)


def test_a_scalar_element_shape_is_unknown_or_an_error() -> None:
    with pytest.raises(DeclinedError, match="a scalar other than -1"):
        required_shape(Emission().constant(np.int32(3)))


def test_a_list_of_a_tensor() -> None:
    emission = Emission()
    elements = emission.input(DataType.FLOAT, (B, 2))
    made = tensor_list(B, (-1,), elements)
    assert as_list(made) is made
    assert (made.dtype, made.length) == (DataType.VARIANT, B)


@pytest.mark.parametrize("count", [-1, 3])
def test_a_list_stacked_again(count: int) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    made = graph.add("TensorListFromTensor", x, np.int32([2]), element_dtype="float32")[0]
    graph.add(
        "TensorListStack", made, np.int32([-1]), element_dtype="float32", num_elements=count,
        name="y",
    )  # fmt: skip
    feeds = {"x:0": np.arange(6, dtype=np.float32).reshape(3, 2)}
    shapes = [(symbol("n") if count == -1 else 3, 2)]
    found = emitted(graph, feeds, ["y:0"], shapes=shapes)
    assert found.kinds() == []
    found.check()


def test_the_length_of_a_list() -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    made = graph.add("TensorListFromTensor", x, np.int32([2]), element_dtype="float32")[0]
    graph.add("TensorListLength", made, name="y")
    found = emitted(graph, {"x:0": np.zeros((3, 2), np.float32)}, ["y:0"])
    found.check()
