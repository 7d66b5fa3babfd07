"""String tensors are read in blocks, between which a step may end."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from runtime.foundation.errors import CancelledError
from runtime.foundation.running_task import BLOCK, set_running_task
from runtime.framework.memory_account import bytes_of
from runtime.framework.string_tensor import string_blocks
from runtime.kernels.memory_sizes import longest_in, text_in
from runtime.kernels.strings.string_reductions import reduce_join


def texts(count: int) -> np.ndarray:
    return np.array([b"%d" % index for index in range(count)], object)


@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_blocks_have_every_element_in_order(count: int) -> None:
    strings = texts(count)
    blocks = list(string_blocks(strings))
    assert [item for block in blocks for item in block] == strings.tolist()
    assert all(len(block) <= BLOCK for block in blocks)


def test_blocks_of_a_transposed_matrix_are_in_row_major_order() -> None:
    strings = texts(2 * BLOCK).reshape(2, BLOCK).T
    assert [*itertools.chain.from_iterable(string_blocks(strings))] == strings.ravel().tolist()


def test_sizes_do_not_depend_on_blocks() -> None:
    strings = texts(2 * BLOCK + 5)
    assert text_in(strings) == sum(map(len, strings))
    assert longest_in(strings) == 4
    parts = strings[:BLOCK], strings[BLOCK : 2 * BLOCK], strings[2 * BLOCK :]
    assert bytes_of(strings) == sum(map(bytes_of, parts))


def test_an_element_that_repeats_counts_each_time() -> None:
    repeated = np.broadcast_to(np.array([b"text"], object), (3 * BLOCK,))
    assert bytes_of(repeated) == 3 * bytes_of(repeated[:BLOCK])


@pytest.mark.parametrize("count", [5, BLOCK + 1])
def test_rows_of_any_length_are_joined(count: int) -> None:
    rows = texts(2 * count).reshape(2, count)
    joined = reduce_join(rows, np.int32(1), keep_dims=False, separator=", ")
    assert joined.tolist() == [b", ".join(row) for row in rows.tolist()]


@pytest.mark.parametrize("read", [lambda strings: list(string_blocks(strings)), text_in, bytes_of])
def test_the_end_of_a_step_ends_reading(read) -> None:
    set_running_task([CancelledError("Step was cancelled by request.")])
    try:
        with pytest.raises(CancelledError):
            read(texts(BLOCK + 1))
    finally:
        set_running_task(())
