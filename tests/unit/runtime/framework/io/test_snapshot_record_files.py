"""Files of snapshots of versions 0 and 1: what was written is read, damage is an error."""

from __future__ import annotations

import gc
import pathlib
import struct

import numpy as np
import pytest

from runtime.foundation.errors import OpError, PermissionDeniedError, ResourceExhaustedError
from runtime.framework.data.dataset import Element
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_gate import AllowAll, FolderGate
from runtime.framework.io.snappy import compress_framed
from runtime.framework.io.snapshot_record_files import SnapshotRecordFile, read_record_file
from runtime.framework.string_tensor import string_tensor

COMPRESSIONS = ("", "GZIP", "SNAPPY")
TYPES = (DataType.INT64, DataType.STRING, DataType.BFLOAT16, DataType.BOOL)
GATE = AllowAll()


def elements() -> list[Element]:
    return [
        (
            np.int64(number),
            string_tensor([b"x" * number, b""], (2, 1)),
            np.arange(number).astype(DataType.BFLOAT16.numpy),
            np.array([number > 1]),
        )
        for number in range(4)
    ]


def write(path: pathlib.Path, compression: str) -> None:
    file = SnapshotRecordFile(str(path), compression, TYPES, GATE)
    for element in elements():
        file.write(element)
    file.close()


def read(path: pathlib.Path, compression: str, version: int = 1) -> list[Element]:
    return list(read_record_file(str(path), compression, version, TYPES, GATE))


def assert_equal(found: list[Element]) -> None:
    expected = elements()
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for value, wanted in zip(one, other, strict=True):
            value, wanted = np.asarray(value), np.asarray(wanted)
            assert value.dtype == wanted.dtype
            np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_elements_are_read_as_they_were_written(compression: str, tmp_path: pathlib.Path) -> None:
    write(tmp_path / "run" / "file", compression)
    assert_equal(read(tmp_path / "run" / "file", compression))


def test_version_0_is_compressed_as_a_whole(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "plain", "")
    (tmp_path / "snappy").write_bytes(compress_framed((tmp_path / "plain").read_bytes()))
    assert_equal(read(tmp_path / "snappy", "SNAPPY", 0))
    assert_equal(read(tmp_path / "plain", "", 0))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_file_cut_anywhere_is_an_error_or_whole_elements(
    compression: str, tmp_path: pathlib.Path
) -> None:
    write(tmp_path / "whole", compression)
    data = (tmp_path / "whole").read_bytes()
    complete = 0
    for length in range(len(data)):
        (tmp_path / "cut").write_bytes(data[:length])
        try:
            complete += len(read(tmp_path / "cut", compression)) < len(elements())
        except OpError:
            continue
    assert complete <= len(elements())


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_changed_byte_ends_in_elements_or_an_error(
    compression: str, tmp_path: pathlib.Path
) -> None:
    write(tmp_path / "whole", compression)
    data = (tmp_path / "whole").read_bytes()
    refused = 0
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0xA5
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            read(tmp_path / "damaged", compression)
        except OpError:
            refused += 1
    assert refused > len(data) // 8


def test_a_length_beyond_any_tensor_is_refused_before_it_is_read(tmp_path: pathlib.Path) -> None:
    (tmp_path / "huge").write_bytes(struct.pack("<Q", 1 << 60) + b"x")
    with pytest.raises(ResourceExhaustedError, match="A record of"):
        read(tmp_path / "huge", "")


def test_the_gate_is_asked_before_a_file_is_opened(tmp_path: pathlib.Path) -> None:
    gate = FolderGate([str(tmp_path / "allowed")], write=True)
    with pytest.raises(PermissionDeniedError, match="may not read"):
        list(read_record_file(str(tmp_path / "other"), "", 1, TYPES, gate))
    with pytest.raises(PermissionDeniedError, match="may not write"):
        SnapshotRecordFile(str(tmp_path / "other"), "", TYPES, gate)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_file_that_is_given_up_is_closed(compression: str, tmp_path: pathlib.Path) -> None:
    file = SnapshotRecordFile(str(tmp_path / "file"), compression, TYPES, GATE)
    for element in elements():
        file.write(element)
    del file
    gc.collect()
    assert_equal(read(tmp_path / "file", compression))
