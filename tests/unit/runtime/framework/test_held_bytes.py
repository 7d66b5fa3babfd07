"""The bytes that values keep alive: views, strings, lists, cycles, and counts that change."""

from __future__ import annotations

import mmap
import tempfile
import tracemalloc
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from runtime.foundation.errors import ResourceExhaustedError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.data.optional import Optional
from runtime.framework.dtypes import DataType
from runtime.framework.growth_limit import GrowthLimit
from runtime.framework.held_bytes import OBJECT_BYTES, HeldBytes, memory_owner, value_bytes
from runtime.framework.ragged_tensor_variant import RaggedTensorVariant
from runtime.framework.resource_manager import ResourceHandle, ResourceManager
from runtime.framework.resources.queues import Queue
from runtime.framework.resources.tensor_list import TensorList
from runtime.framework.resources.tensor_map import TensorMap
from runtime.framework.resources.variable import Variable
from runtime.framework.sparse_matrix import from_coordinates

MEGABYTE = 1 << 20
FLOAT = DataType.FLOAT
NOTHING = CancellationManager()


def numbers(size: int = 1000) -> np.ndarray:
    return np.zeros(size, np.float32)


class Ring:
    """A value that keeps itself alive."""

    def __init__(self) -> None:
        self.kept: list[object] = [self, numbers(1000)]

    def held(self) -> tuple[int, Iterable[object]]:
        return 7, self.kept


def test_an_array_counts_the_memory_that_it_is_a_view_of() -> None:
    whole = numbers(MEGABYTE)
    view = whole[:2][::-1]
    assert value_bytes(view) == value_bytes(whole) == whole.nbytes + OBJECT_BYTES
    assert value_bytes(view, whole, whole[5:]) == whole.nbytes + 3 * OBJECT_BYTES


def test_elements_that_share_memory_count_once() -> None:
    repeated = np.broadcast_to(np.float32(1), (1 << 20, 1 << 20))
    assert value_bytes(repeated) < 1000
    assert value_bytes(np.lib.stride_tricks.as_strided(np.ones(3), (1 << 30,), (0,))) < 1000


def test_an_array_of_a_message_counts_the_message() -> None:
    content = bytes(MEGABYTE)
    one, other = (np.frombuffer(content, np.uint8)[at:] for at in (0, 500))
    assert memory_owner(one) is memory_owner(other) is content
    assert MEGABYTE < value_bytes(one, other) < MEGABYTE + 1000


def test_a_mapped_file_counts_by_the_view() -> None:
    with tempfile.TemporaryFile() as file:
        file.truncate(MEGABYTE)
        mapped = mmap.mmap(file.fileno(), MEGABYTE, access=mmap.ACCESS_READ)
        part = np.frombuffer(memoryview(mapped)[:4096], np.uint8)
        assert 4096 <= value_bytes(part) < 4096 + 1000
        del part


def test_strings_count_by_their_contents_and_each_object_once() -> None:
    text = b"x" * 1000
    assert 8 * 1000 + 1000 < value_bytes(np.array([text] * 1000, object)) < 10_000
    distinct = np.array([b"%d" % i + text for i in range(10)], object)
    assert 10_000 < value_bytes(distinct) < 11_500
    assert value_bytes(np.array(text, object)) > 1000
    assert value_bytes(np.empty(0, object)) == OBJECT_BYTES


def test_variants_count_what_they_contain() -> None:
    array = numbers(MEGABYTE)
    handle = ResourceHandle("", "v", Variable.type_name, resource=variable_of(array))
    rows = np.arange(1000)
    for variant in (
        TensorList(FLOAT, None, [array]),
        TensorList(FLOAT, None, [array]).pushed(numbers(2)),
        TensorMap().inserted(np.int64(1), array),
        RaggedTensorVariant((np.array([0, 3]),), array),
        Optional((array,)),
        handle,
        np.array([Optional((array,)), None], object),
        from_coordinates(rows, rows, rows, np.zeros((1000, 1000)), (1, 1000, 1000), False),
        {"key": [array], b"other": {1, 2.0, None}},
    ):
        assert array.nbytes <= value_bytes(variant) < 2 * array.nbytes
    assert value_bytes(Optional()) < 1000


def variable_of(array: np.ndarray) -> Variable:
    variable = Variable(FLOAT)
    variable.assign(array)
    return variable


def test_an_old_version_of_a_list_counts_what_only_it_keeps() -> None:
    first = TensorList(FLOAT, None, [numbers(MEGABYTE)])
    second, _ = first.popped()
    third = second.pushed(numbers(10))
    assert value_bytes(third) < 1000
    assert value_bytes(second) < 1000
    assert value_bytes(first) > 4 * MEGABYTE


def test_a_cycle_ends() -> None:
    ring = Ring()
    assert 4007 < value_bytes(ring, ring) < 5000
    variable = Variable(DataType.RESOURCE)
    handle = ResourceHandle("", "v", Variable.type_name, resource=variable)
    variable.assign(np.array([handle], object))
    assert 0 < variable.bytes_held < 2000


def test_a_deep_structure_is_no_deep_recursion() -> None:
    nested: Any = numbers(1)
    for _ in range(100_000):
        nested = Optional((nested,))
    assert value_bytes(nested) > 100_000 * OBJECT_BYTES / 2


@pytest.mark.parametrize(
    "values",
    [
        [np.zeros(3), np.float32(1), np.array(b"some", object)],
        list(np.zeros((1000, 200))),  # views of one memory
        list(np.array([[b"%d" % i, bytes(i)] for i in range(100)], object)),
        [numbers(100_000)] * 5,
        [TensorList(FLOAT, None, [numbers(10)])] * 3,
        [Optional((numbers(10),)), np.zeros(3)[1:], np.array([Optional()], object)],
    ],
)
def test_a_count_returns_to_nothing(values: list[object]) -> None:
    held = HeldBytes()
    counts = []
    for value in values:
        held.add([value])
        counts.append(held.bytes)
    assert counts == sorted(counts)
    size = value_bytes(*values)
    assert 0.6 * size <= held.bytes <= 1.1 * size + 200 * len(values)
    for value, count in zip(reversed(values), [*counts[-2::-1], 0], strict=True):
        held.drop([value])
        if len({id(each) for each in values}) == len(values):
            assert held.bytes <= count + 300_000  # a shared memory counts until its last view goes
    assert held.bytes == 0 and not held._shared


def test_a_changing_count_needs_little_memory_of_its_own() -> None:
    held = HeldBytes()
    values = [np.zeros(2) for _ in range(1000)]
    tracemalloc.start()
    try:
        held.add(values)
        assert tracemalloc.get_traced_memory()[0] < 20_000
    finally:
        tracemalloc.stop()
    held.clear()
    assert held.bytes == 0


def test_what_a_limit_refuses_is_not_counted() -> None:
    held = HeldBytes()
    held.limit = GrowthLimit(lambda: held.bytes, 2 * MEGABYTE)
    held.add([numbers(100_000)])
    before = held.bytes
    with pytest.raises(ResourceExhaustedError, match="max_session_bytes is 2097152"):
        held.add([numbers(100_000), numbers(MEGABYTE)])
    assert held.bytes == before
    held.add([numbers(100_000)])


def test_resources_that_share_memory_count_it_once() -> None:
    manager = ResourceManager()
    whole = numbers(MEGABYTE)
    for index in range(10):
        variable = manager.look_up_or_create("", Variable, str(index), lambda: Variable(FLOAT))
        variable.assign(whole[index * 1000 :][:1000])
    assert whole.nbytes < manager.bytes_held < whole.nbytes + 10_000


def test_a_queue_counts_an_element_from_its_enqueue_to_the_end_of_its_dequeue() -> None:
    queue = Queue("q", (FLOAT,), (), 1)

    def enqueue(count: int = 1) -> Any:
        return queue.enqueue([(numbers(),)] * count, NOTHING)

    enqueue()
    one = queue.bytes_held
    waiting = enqueue(2)
    assert queue.bytes_held > one
    step = CancellationManager()
    taken = queue.dequeue(5, lambda elements: (), step)
    assert queue.size == 0 and queue.bytes_held > one  # three wait for two more
    waiting.wait()
    step.cancel(ResourceExhaustedError("over"))
    with pytest.raises(Exception, match="cancelled"):
        taken.wait()  # type: ignore[union-attr]
    queue.dequeue(queue.size, lambda elements: (), NOTHING)
    assert queue.bytes_held == 0
    enqueue()
    pending = enqueue(3)
    queue.close(True, NOTHING)
    with pytest.raises(Exception, match="cancelled"):
        pending.wait()
    assert queue.bytes_held == one
    with pytest.raises(Exception, match="is closed"):
        enqueue()
    assert queue.bytes_held == one
