"""large_array: memory that is freed without the interpreter's lock."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from runtime.framework.held_bytes import OBJECT_BYTES, value_bytes
from runtime.framework.io.large_array import LEAST_BYTES, large_array


def memory_of(array: np.ndarray) -> object:
    """Return what an array's memory belongs to; None if numpy allocated it."""
    base = array.base
    return base.obj if isinstance(base, memoryview) else base


@pytest.mark.parametrize("size", [LEAST_BYTES, LEAST_BYTES + 1, 5 << 20])
def test_large_arrays_are_mappings_that_can_be_written(size: int) -> None:
    array = large_array(size)
    array[:] = 7
    assert isinstance(memory_of(array), mmap.mmap)
    assert (array.dtype, array.shape) == (np.uint8, (size,))
    assert array.sum(dtype=np.int64) == 7 * size
    assert value_bytes(array.view(np.int8)) == size + OBJECT_BYTES


def test_small_arrays_come_from_numpy() -> None:
    array = large_array(LEAST_BYTES - 1)
    assert memory_of(array) is None
    assert array.shape == (LEAST_BYTES - 1,)


def test_a_mapping_lives_as_long_as_its_last_view() -> None:
    array = large_array(LEAST_BYTES)
    array[-1] = 9
    mapping = memory_of(array)
    assert isinstance(mapping, mmap.mmap)
    view = array[-1:].view(np.int8)
    del array
    with pytest.raises(BufferError):
        mapping.close()
    assert view[0] == 9
    del view
    mapping.close()
    assert mapping.closed


def test_memory_that_the_system_does_not_have_is_an_error() -> None:
    with pytest.raises(MemoryError, match=r"^1125899906842624 bytes can't be mapped: "):
        large_array(1 << 50)
