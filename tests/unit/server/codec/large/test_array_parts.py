"""Arrays written in parts."""

import base64

import numpy as np
import orjson
import pytest

from server.codec.large import array_parts
from server.codec.large.array_parts import base64_parts, blocks, content_bytes, json_parts

BLOCK = 6


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(array_parts, "BLOCK_ELEMENTS", BLOCK)
    monkeypatch.setattr(array_parts, "BLOCK_STRINGS", 2)


def to_json(array):
    return orjson.dumps(np.ascontiguousarray(array), option=orjson.OPT_SERIALIZE_NUMPY)


@pytest.mark.parametrize(
    "shape",
    [
        *[(1,), (6,), (7,), (20,), (3, 2), (4, 2), (2, 7), (5, 3, 2), (1, 1, 13), (2, 3, 4, 1)],
        *[(0,), (13, 0), (0, 13), (2, 13, 0), (13, 0, 2)],
    ],
)
def test_the_parts_are_the_text_of_the_array(shape):
    array = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    sizes = []

    def write(block):
        sizes.append(block.size)
        return to_json(block)

    assert b"".join(json_parts(array, write)) == to_json(array)
    assert max(sizes, default=0) <= BLOCK
    sizes.clear()
    assert b"".join(
        json_parts(array.astype(object), lambda b: write(b.astype(np.int64)))
    ) == to_json(array)
    assert max(sizes, default=0) <= 2


def test_blocks_hold_each_element_once():
    array = np.arange(20).reshape(4, 5)
    parts = list(blocks(array))
    assert max(map(len, parts)) <= BLOCK
    assert np.concatenate(parts).tolist() == list(range(20))


@pytest.mark.parametrize("sizes", [[], [0], [1], [3, 3], [1, 1, 1, 1], [5, 2, 0, 7], [2, 2]])
def test_base64(sizes):
    contents = [bytes(range(size)) for size in sizes]
    assert b"".join(base64_parts(contents)) == base64.b64encode(b"".join(contents))


@pytest.mark.parametrize(
    ("array", "size"),
    [
        (np.zeros((3, 2), np.float32), 24),
        (np.zeros((1000, 0), np.float32), 2000),
        (np.zeros((0, 1000), np.float32), 2000),
    ],
)
def test_empty_lists_take_time_to_write_as_well(array: np.ndarray, size: int) -> None:
    assert content_bytes(array) == size
