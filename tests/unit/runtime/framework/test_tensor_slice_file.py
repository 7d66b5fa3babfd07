"""Checkpoints in the V1 format: TensorFlow's file is read, and written byte for byte."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from runtime.foundation.errors import DataLossError, NotFoundError, OpError, PermissionDeniedError
from runtime.framework.dtypes import from_numpy
from runtime.framework.io.file_gate import AllowAll, FolderGate
from runtime.framework.io.tensor_slice import TensorSlice, parse_shape_and_slice
from runtime.framework.io.tensor_slice_file import (
    NamedSlice,
    TensorSliceReader,
    write_tensor_slices,
)
from tests import checkpoint_tensors as given

V1 = pathlib.Path(__file__).parents[3] / "fixtures" / "checkpoints" / "v1"
WHOLE = {name: value for name, spec, value in given.V1 if not spec} | {"table": given.TABLE}


def read(path: pathlib.Path, name: str) -> np.ndarray:
    reader = TensorSliceReader(str(path), AllowAll())
    tensor = reader.tensor(name, from_numpy(WHOLE[name].dtype))
    return reader.read(name, tensor, TensorSlice.whole(len(tensor.shape)))


@pytest.mark.parametrize("name", WHOLE)
def test_reads_what_tensorflow_wrote(name: str) -> None:
    got = read(V1, name)
    assert (got.dtype, got.shape) == (WHOLE[name].dtype, WHOLE[name].shape)
    np.testing.assert_array_equal(got, WHOLE[name])


def named_slices() -> list[NamedSlice]:
    slices = []
    for name, spec, value in given.V1:
        shape, part = value.shape, TensorSlice.whole(value.ndim)
        if spec:
            shape, part = parse_shape_and_slice(spec)
        slices.append(NamedSlice(name, shape, part, value, from_numpy(value.dtype)))
    return slices


def test_writes_what_tensorflow_writes(tmp_path: pathlib.Path) -> None:
    write_tensor_slices(str(tmp_path / "v1"), named_slices(), AllowAll())
    assert (tmp_path / "v1").read_bytes() == V1.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["v1"]


def test_a_file_that_is_no_table(tmp_path: pathlib.Path) -> None:
    (tmp_path / "junk").write_bytes(b"junk" * 30)
    with pytest.raises(DataLossError) as caught:
        TensorSliceReader(str(tmp_path / "junk"), AllowAll())
    assert caught.value.message == (
        f"Unable to open table file {tmp_path}/junk: DATA_LOSS: not an sstable (bad magic "
        "number): perhaps your file is in a different file format and you need to use a different "
        "restore operator?"
    )


def test_the_gate_is_asked_for_patterns_and_matches(tmp_path: pathlib.Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "a").symlink_to(V1)
    gate = FolderGate([str(inner)], write=True)
    with pytest.raises(PermissionDeniedError):
        TensorSliceReader(str(inner / "*"), gate)
    with pytest.raises(PermissionDeniedError):
        TensorSliceReader(str(tmp_path / "*"), gate)
    with pytest.raises(NotFoundError):
        TensorSliceReader(str(inner / "nothing*"), gate)
    with pytest.raises(PermissionDeniedError):
        write_tensor_slices(str(tmp_path / "x"), [], gate)


def test_no_flipped_byte_gives_a_wrong_answer(tmp_path: pathlib.Path) -> None:
    whole = V1.read_bytes()
    path = tmp_path / "v1"
    for position in range(0, len(whole), 9):
        damaged = bytearray(whole)
        damaged[position] ^= 0x40
        path.write_bytes(damaged)
        for name in ("table", "words", "scalar"):
            try:
                got = read(path, name)
            except OpError:
                continue
            np.testing.assert_array_equal(got, WHOLE[name])
