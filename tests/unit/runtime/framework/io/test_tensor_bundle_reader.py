"""Bundles that TensorFlow wrote, whole and damaged."""

from __future__ import annotations

import os
import pathlib
import shutil

import numpy as np
import pytest

import protos as pb
from runtime.foundation.errors import (
    DataLossError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from runtime.framework import allocation
from runtime.framework.io.file_gate import AllowAll, FolderGate
from runtime.framework.io.masked_crc32c import crc32c, mask
from runtime.framework.io.sstable import MAGIC, read_table
from runtime.framework.io.tensor_bundle_reader import TensorBundleReader
from runtime.framework.io.tensor_bundle_writer import new_index
from runtime.framework.io.tensor_slice import TensorSlice
from tests import checkpoint_tensors as given
from tests.faults import ChangingFiles

CHECKPOINTS = pathlib.Path(__file__).parents[4] / "fixtures" / "checkpoints"


def open_bundle(name: str) -> TensorBundleReader:
    return TensorBundleReader(str(CHECKPOINTS / name), AllowAll())


@pytest.fixture
def plain(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the bundle `plain`, to be damaged; its prefix."""
    for file in CHECKPOINTS.glob("plain.*"):
        shutil.copy(file, tmp_path)
    return tmp_path / "plain"


def index_of(prefix: pathlib.Path) -> pathlib.Path:
    return prefix.with_suffix(".index")


def data_of(prefix: pathlib.Path) -> pathlib.Path:
    return prefix.with_suffix(".data-00000-of-00001")


def read_all(prefix: pathlib.Path) -> dict[str, np.ndarray]:
    with TensorBundleReader(str(prefix), AllowAll()) as reader:
        return {name: reader.read(name) for name in reader.names}


def assert_same(got: np.ndarray, want: np.ndarray) -> None:
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", given.PLAIN)
def test_reads_each_type(name: str) -> None:
    with open_bundle("plain") as reader:
        assert name in reader
        assert_same(reader.read(name), given.PLAIN[name])


def test_names_are_those_of_tensors_not_of_slices() -> None:
    with open_bundle("plain") as reader:
        assert reader.names == sorted(given.PLAIN)
    with open_bundle("partitioned") as reader:
        assert reader.names == ["long", "table"]


def test_puts_a_partitioned_tensor_together() -> None:
    with open_bundle("partitioned") as reader:
        assert_same(reader.read("table"), given.TABLE)
        assert_same(reader.read("long"), given.LONG)


@pytest.mark.parametrize("spec", ["-:-", "1,2:-", "-:1,2", "0,1:0,1", "1,3:2,1"])
@pytest.mark.parametrize("bundle", ["partitioned", "sharded"])
def test_reads_a_slice_that_cuts_across_the_parts(bundle: str, spec: str) -> None:
    part = TensorSlice.parse(spec)
    with open_bundle(bundle) as reader:
        assert_same(reader.read_slice("table", part), given.TABLE[part.bounds((4, 3))])


def test_reads_a_slice_of_a_tensor_that_is_stored_whole() -> None:
    with open_bundle("plain") as reader:
        got = reader.read_slice("numbers/float32", TensorSlice.parse("1,1:0,2"))
        assert_same(got, given.PLAIN["numbers/float32"][1:2, 0:2])


def test_reads_several_shards() -> None:
    with open_bundle("sharded") as reader:
        assert reader.num_shards == 2
        assert_same(reader.read("table"), given.TABLE)
        assert_same(reader.read("extra"), given.EXTRA)


def test_a_slice_outside_of_the_tensor() -> None:
    with open_bundle("plain") as reader, pytest.raises(InternalError) as caught:
        reader.read_slice("numbers/float32", TensorSlice.parse("0,3:1,2"))
    assert caught.value.message == (
        "Extent in dimension 0 out of bounds: shape = [2,3], slice = 0,3:1,2"
    )


def test_a_missing_slice() -> None:
    with open_bundle("lonely_slice") as reader, pytest.raises(InvalidArgumentError) as caught:
        reader.read("table")
    assert caught.value.message == (
        "Does not have sufficient slices for partitioned tensor table to restore in slice_spec: -:-"
    )
    with open_bundle("lonely_slice") as reader:
        assert_same(reader.read_slice("table", TensorSlice.parse("0,2:-")), given.TABLE[:2])


def test_a_name_that_is_not_there() -> None:
    with open_bundle("plain") as reader:
        assert "nokey" not in reader
        assert "" not in reader
        for name in ("nokey", ""):
            with pytest.raises(NotFoundError, match=f"Key {name} not found in checkpoint"):
                reader.read(name)


def test_is_stored_as_compares_bytes() -> None:
    with open_bundle("plain") as reader:
        entry = reader.entry("numbers/int32")
        assert reader.is_stored_as(entry, given.PLAIN["numbers/int32"])
        assert not reader.is_stored_as(entry, given.PLAIN["numbers/int32"] + 1)
        assert not reader.is_stored_as(entry, given.PLAIN["numbers/int64"])


def test_a_missing_shard(plain: pathlib.Path) -> None:
    data_of(plain).unlink()
    with pytest.raises(NotFoundError) as caught:
        read_all(plain)
    assert caught.value.message == f"{plain}.data-00000-of-00001; No such file or directory"


def test_a_missing_index(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        TensorBundleReader(str(tmp_path / "x"), AllowAll())
    assert caught.value.message == f"{tmp_path}/x.index; No such file or directory"


def test_a_truncated_shard(plain: pathlib.Path) -> None:
    os.truncate(data_of(plain), 100)
    with pytest.raises(OutOfRangeError, match="Read less bytes than requested"):
        read_all(plain)


def test_a_shard_that_becomes_shorter_while_it_is_read(plain: pathlib.Path) -> None:
    """A mapped file would end the process at the first access beyond its new end."""
    data = data_of(plain)
    with TensorBundleReader(str(plain), AllowAll()) as reader:
        first, last = "numbers/float32", "word"
        before = reader.read(first).copy()
        value = reader.read(first)
        os.truncate(data, reader.entry(last).offset)
        with pytest.raises(OutOfRangeError, match="Read less bytes than requested"):
            reader.read(last)
        os.truncate(data, 0)
        np.testing.assert_array_equal(value, before)
        with pytest.raises(OutOfRangeError, match="Read less bytes than requested"):
            reader.read(first)


def test_a_shard_that_becomes_shorter_after_the_index_was_read(plain: pathlib.Path) -> None:
    def shorten(path: str) -> None:
        if ".data-" in path:
            os.truncate(path, 1)

    with (
        TensorBundleReader(str(plain), ChangingFiles(shorten)) as reader,
        pytest.raises(OutOfRangeError, match="Read less bytes than requested"),
    ):
        for name in reader.names:
            reader.read(name)


def test_a_flipped_value(plain: pathlib.Path) -> None:
    with TensorBundleReader(str(plain), AllowAll()) as reader:
        entry = reader.entry("scalar")
    flip(data_of(plain), entry.offset)
    with (
        TensorBundleReader(str(plain), AllowAll()) as reader,
        pytest.raises(DataLossError) as caught,
    ):
        reader.read("scalar")
    assert caught.value.message.startswith(
        f"TensorBundle at {plain} shard 0 (4 bytes): Checksum does not match: "
        f"stored {entry.checksum} vs. calculated on the restored bytes "
    )


def test_a_flipped_string_length(plain: pathlib.Path) -> None:
    with TensorBundleReader(str(plain), AllowAll()) as reader:
        entry = reader.entry("words")
    flip(data_of(plain), entry.offset)
    with (
        TensorBundleReader(str(plain), AllowAll()) as reader,
        pytest.raises(DataLossError, match="The length checksum does not match: expected "),
    ):
        reader.read("words")


INDEX_DAMAGE = {
    "short": (lambda data: data[:30], "file is too short to be an sstable"),
    "empty": (lambda data: b"", "file is too short to be an sstable"),
    "cut": (lambda data: data[:-1], "not an sstable (bad magic number)"),
    "magic": (lambda data: data[:-1] + b"\0", "not an sstable (bad magic number)"),
}


@pytest.mark.parametrize("damage", INDEX_DAMAGE)
def test_damage_to_the_index_as_a_whole(plain: pathlib.Path, damage: str) -> None:
    change, message = INDEX_DAMAGE[damage]
    index_of(plain).write_bytes(change(index_of(plain).read_bytes()))
    with pytest.raises(DataLossError) as caught:
        read_all(plain)
    assert caught.value.message == message


def test_a_flipped_byte_in_a_block_of_the_index(plain: pathlib.Path) -> None:
    flip(index_of(plain), 20)
    with pytest.raises(DataLossError) as caught:
        read_all(plain)
    assert caught.value.message == (
        f"Unable to read file ({plain}.index). Perhaps the file is corrupt or was produced by a "
        "newer version of TensorFlow with format changes (failed to seek to header entry): "
        "block checksum mismatch"
    )


def flip(path: pathlib.Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x40
    path.write_bytes(data)


def test_no_flipped_byte_gives_a_wrong_answer(plain: pathlib.Path) -> None:
    want = read_all(plain)
    index, data = index_of(plain), data_of(plain)
    places = [(index, i) for i in range(index.stat().st_size)]
    places += [(data, i) for i in range(0, data.stat().st_size, data.stat().st_size // 20)]
    for path, position in places:
        flip(path, position)
        try:
            got = read_all(plain)
        except OpError:
            pass
        else:
            assert got.keys() == want.keys(), (path.name, position)
            for name in want:
                assert_same(got[name], want[name])
        flip(path, position)


def test_no_truncation_gives_a_wrong_answer(plain: pathlib.Path) -> None:
    for path in (index_of(plain), data_of(plain)):
        whole = path.read_bytes()
        for length in range(0, len(whole), 7):
            path.write_bytes(whole[:length])
            with pytest.raises(OpError):
                read_all(plain)
        path.write_bytes(whole)


def test_blocks_may_be_compressed_with_snappy() -> None:
    """Older versions of TensorFlow compressed blocks; here a literal and copies of each width."""
    entry = b"\x00\x03\x08key" + 4 * b"ab"
    block = entry + b"\0\0\0\0" + b"\x01\0\0\0"
    snapped = bytes([len(block), 7 << 2]) + entry[:8] + bytes([2 | 5 << 2, 2, 0])
    snapped += bytes([7 << 2]) + block[len(entry) :]
    table = snapped_table(snapped, b"key")
    assert list(read_table(table)) == [(b"key", 4 * b"ab")]
    with pytest.raises(DataLossError, match="snappy block"):
        list(read_table(snapped_table(snapped[:-3], b"key")))


def snapped_table(block: bytes, last_key: bytes) -> bytes:
    """A table of one compressed block."""

    def stored(content: bytes, kind: int) -> bytes:
        data = content + bytes([kind])
        return data + mask(crc32c(data)).to_bytes(4, "little")

    handle = bytes([0, len(block)])
    index = bytes([0, len(last_key), len(handle)]) + last_key + handle
    index += b"\0\0\0\0" + b"\x01\0\0\0"
    start = len(block) + 5
    footer = bytes([0, 0, start, len(index)]).ljust(40, b"\0") + MAGIC
    return stored(block, 1) + stored(index, 0) + footer


def test_the_gate_is_asked_for_every_file(plain: pathlib.Path, tmp_path: pathlib.Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.move(data_of(plain), elsewhere)
    data_of(plain).symlink_to(elsewhere / data_of(plain).name)
    inner = tmp_path / "inner"
    inner.mkdir()
    for path in (index_of(plain), data_of(plain)):
        shutil.move(path, inner)
    reader = TensorBundleReader(str(inner / "plain"), FolderGate([str(inner)]))
    with reader, pytest.raises(PermissionDeniedError, match="may not read"):
        reader.read("scalar")


def test_the_allocation_limit_comes_before_the_allocation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(allocation, "_limit", [16])
    with open_bundle("plain") as reader, pytest.raises(ResourceExhaustedError, match="OOM"):
        reader.read("numbers/float32")


@pytest.mark.parametrize("dtype", [pb.DT_STRING, pb.DT_VARIANT])
def test_a_size_beyond_the_file_comes_before_the_allocation(
    dtype: pb.DataType, plain: pathlib.Path
) -> None:
    entry = pb.BundleEntryProto(dtype=dtype, size=1 << 62)
    with new_index(str(index_of(plain)), {b"huge": entry}, num_shards=1) as index:
        index.rename()
    with (
        TensorBundleReader(str(plain), AllowAll()) as reader,
        pytest.raises(OutOfRangeError, match="Read less bytes than requested"),
    ):
        reader.read("huge")
