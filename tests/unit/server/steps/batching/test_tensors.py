"""Tasks are concatenated, padded and split."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.errors import FailedPreconditionError, InvalidArgumentError, ResourceExhaustedError
from runtime.framework.allocation import set_tensor_limit, tensor_limit
from server.steps.batching.tensors import joined, key_of, merged, merged_bytes, rows_of, split


def test_tasks_follow_each_other_and_the_first_row_of_the_last_one_fills_up() -> None:
    tasks = [
        [np.float32([1, 2]), np.array([b"a", b"b"], object)],
        [np.float32([3, 4, 5]), np.array([b"c", b"d", b"e"], object)],
    ]
    numbers, texts = merged(tasks, 8)
    assert numbers.dtype == np.float32
    assert numbers.tolist() == [1, 2, 3, 4, 5, 3, 3, 3]
    assert texts.tolist() == [b"a", b"b", b"c", b"d", b"e", b"c", b"c", b"c"]


def test_shorter_rows_are_padded_with_the_first_element_of_their_task() -> None:
    tasks = [[np.int64([[7, 8]])], [np.int64([[1, 2, 3], [4, 5, 6]])]]
    assert merged(tasks, 4)[0].tolist() == [[7, 8, 7], [1, 2, 3], [4, 5, 6], [1, 2, 3]]
    assert merged_bytes(tasks, 4) == 4 * 3 * 8


def test_a_key_has_the_shapes_of_rows_or_with_padding_the_ranks() -> None:
    short, long = [np.zeros((1, 2))], [np.zeros((3, 5))]
    assert key_of(short, pads=False) != key_of(long, pads=False)
    assert key_of(short, pads=True) == key_of(long, pads=True)
    assert key_of(short, pads=True) != key_of([np.zeros((1, 2, 1))], pads=True)
    assert key_of(short, pads=True) != key_of([np.zeros((1, 2), np.float32)], pads=True)
    # TensorFlow Serving can't pad these, so they only join tasks of their own shape.
    assert key_of(short, pads=True) != key_of([np.zeros((1, 0))], pads=True)
    high = [np.zeros((1,) * 7)], [np.zeros((*(1,) * 6, 2))]
    assert key_of(high[0], pads=True) != key_of(high[1], pads=True)


def test_inputs_need_a_common_number_of_rows() -> None:
    assert rows_of([np.zeros((2, 3)), np.zeros(2)]) == 2
    with pytest.raises(InvalidArgumentError) as raised:
        rows_of([np.zeros(2), np.zeros(3)])
    assert raised.value.message == "Batching Run() input tensors must have equal 0th-dimension size"
    with pytest.raises(InvalidArgumentError) as raised:
        rows_of([np.zeros(2), np.zeros(())])
    assert raised.value.message == ("Batching Run() input tensors must have at least one dimension")


def test_outputs_are_split_and_padding_is_dropped() -> None:
    parts = split([np.arange(5), np.arange(10).reshape(5, 2)], [1, 2], 5)
    assert [[array.tolist() for array in part] for part in parts] == [
        [[0], [[0, 1]]],
        [[1, 2], [[2, 3], [4, 5]]],
    ]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (np.float32(1), "Batched output tensor has 0 dimensions"),
        (np.zeros(4), "Batched output tensor's 0th dimension does not equal the sum"),
    ],
)
def test_outputs_that_are_not_by_row_are_refused(output: object, text: str) -> None:
    with pytest.raises(FailedPreconditionError) as raised:
        split([output], [1, 2], 3)
    assert raised.value.message.startswith(text)


def test_a_batch_has_no_larger_tensor_than_a_step_may() -> None:
    before = tensor_limit()
    set_tensor_limit(1000)
    try:
        with pytest.raises(ResourceExhaustedError, match="A batch would have a tensor of 1600"):
            merged_bytes([[np.zeros((1, 1))], [np.zeros((1, 100))]], 2)
    finally:
        set_tensor_limit(before)


def test_parts_of_a_request_are_joined() -> None:
    first, second = np.ones((2, 3), np.float32), np.zeros((1, 3), np.float32)
    (whole,) = joined([[first], [second]])
    assert whole.tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 0]]


def test_parts_that_were_padded_differently_are_padded_alike() -> None:
    numbers = joined([[np.float32([[1, 2]])], [np.float32([[3]])], [np.empty((1, 0), np.float32)]])
    assert numbers[0].tolist() == [[1, 2], [3, 3], [0, 0]]
    texts = joined([[np.array([[b"a", b"b"]], object)], [np.empty((1, 0), object)]])
    assert texts[0].tolist() == [[b"a", b"b"], [b"", b""]]


@pytest.mark.parametrize("other", [np.float32(1), np.ones((1, 1, 1), np.float32)])
def test_parts_of_different_ranks_are_an_error(other: np.ndarray) -> None:
    with pytest.raises(FailedPreconditionError, match="parts of a request have ranks"):
        joined([[np.ones((1, 1), np.float32)], [np.asarray(other)]])
