"""Reading up to a limit takes what the file has, not what the limit allows."""

from __future__ import annotations

import gzip
import io
import pathlib
import tracemalloc

import pytest

from runtime.framework.io.bounded_reads import PART_BYTES, read_at_most

GIB = 1 << 30


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES + 5])
@pytest.mark.parametrize("most", [1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES, GIB])
def test_it_reads_what_there_is_up_to_the_limit(
    size: int, most: int, tmp_path: pathlib.Path
) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    data = data[:size]
    path, packed = tmp_path / "plain", tmp_path / "packed"
    path.write_bytes(data)
    packed.write_bytes(gzip.compress(data, 1))
    with path.open("rb") as plain, gzip.open(packed, "rb") as unpacked:
        for file in (plain, unpacked, io.BytesIO(data)):
            assert read_at_most(file, most) == data[:most]  # type: ignore[arg-type] # all read bytes


def test_it_continues_where_the_file_is(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"head" + b"x" * (2 * PART_BYTES))
    with path.open("rb") as file:
        assert file.read(4) == b"head"
        assert read_at_most(file, GIB) == b"x" * (2 * PART_BYTES)
        assert read_at_most(file, GIB) == b""


def test_a_file_whose_size_is_not_known_is_read_to_its_end() -> None:
    with pathlib.Path("/proc/self/status").open("rb") as file:
        assert b"VmRSS" in read_at_most(file, GIB)


def test_a_small_file_takes_little_memory(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    tracemalloc.start()
    try:
        with path.open("rb") as file:
            read_at_most(file, GIB)
        assert tracemalloc.get_traced_memory()[1] < 4 * PART_BYTES
    finally:
        tracemalloc.stop()
