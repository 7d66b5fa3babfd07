"""Writing and merging bundles; TensorFlow's own files are matched byte for byte."""

from __future__ import annotations

import pathlib

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import ml_dtypes
import numpy as np
import pytest

from runtime.foundation.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.io.file_gate import AllowAll, DenyAll
from runtime.framework.io.sstable import BLOCK_BYTES, read_table, write_table
from runtime.framework.io.tensor_bundle_merge import merge_bundles
from runtime.framework.io.tensor_bundle_reader import TensorBundleReader
from runtime.framework.io.tensor_bundle_writer import TensorBundleWriter
from runtime.framework.io.tensor_slice import parse_shape_and_slice
from tests import checkpoint_tensors as given

CHECKPOINTS = pathlib.Path(__file__).parents[3] / "fixtures" / "checkpoints"
Parts = tuple[tuple[str, np.ndarray], ...]


def write_plain(prefix: pathlib.Path, tensors: dict[str, np.ndarray]) -> None:
    with TensorBundleWriter(str(prefix), AllowAll()) as writer:
        for name, value in tensors.items():
            writer.add(name, value, from_numpy(value.dtype))
        writer.finish()


def add_parts(writer: TensorBundleWriter, name: str, parts: Parts) -> None:
    for spec, value in parts:
        shape, part = parse_shape_and_slice(spec)
        writer.add_slice(name, shape, part, value, from_numpy(value.dtype))


def assert_equal_files(folder: pathlib.Path, name: str) -> None:
    theirs = sorted(CHECKPOINTS.glob(f"{name}.*"))
    assert [path.name for path in theirs] == sorted(p.name for p in folder.glob(f"{name}.*"))
    for path in theirs:
        assert (folder / path.name).read_bytes() == path.read_bytes(), path.name


def test_writes_what_tensorflow_writes(tmp_path: pathlib.Path) -> None:
    write_plain(tmp_path / "plain", given.PLAIN)
    assert_equal_files(tmp_path, "plain")


def test_writes_parts_as_tensorflow_does(tmp_path: pathlib.Path) -> None:
    with TensorBundleWriter(str(tmp_path / "partitioned"), AllowAll()) as writer:
        add_parts(writer, "table", given.PARTS)
        add_parts(writer, "long", given.LONG_PARTS)
        writer.finish()
    assert_equal_files(tmp_path, "partitioned")


def write_halves(folder: pathlib.Path) -> list[str]:
    prefixes = [str(folder / f"part-{i}") for i in range(2)]
    for prefix, half in zip(prefixes, given.HALVES, strict=True):
        with TensorBundleWriter(prefix, AllowAll()) as writer:
            add_parts(writer, "table", (half,))
            if prefix.endswith("1"):
                writer.add("extra", given.EXTRA, DataType.INT64)
            writer.finish()
    return prefixes


def test_merges_as_tensorflow_does(tmp_path: pathlib.Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    merge_bundles(write_halves(parts), str(tmp_path / "new" / "sharded"), AllowAll())
    assert_equal_files(tmp_path / "new", "sharded")
    assert list(parts.iterdir()) == []


def test_merging_a_tensor_twice_moves_nothing(tmp_path: pathlib.Path) -> None:
    write_plain(tmp_path / "a", {"x": np.zeros(2)})
    write_plain(tmp_path / "b", {"x": np.ones(2)})
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InvalidArgumentError) as caught:
        merge_bundles([f"{tmp_path}/a", f"{tmp_path}/b"], f"{tmp_path}/c", AllowAll())
    assert caught.value.message == (
        f"Duplicate tensor keyed by x encountered, when merging prefix: {tmp_path}/b"
    )
    assert sorted(tmp_path.iterdir()) == before


def test_merging_what_is_missing(tmp_path: pathlib.Path) -> None:
    missing = str(tmp_path / "nope")
    with pytest.raises(InvalidArgumentError) as caught:
        merge_bundles([missing], f"{tmp_path}/c", AllowAll())
    assert caught.value.message == (
        f"allow_missing_files was set to false and {missing} did not exist."
        f"NOT_FOUND: {missing} not found"
    )
    with pytest.raises(InvalidArgumentError, match="At least one prefix checkpoint file must"):
        merge_bundles([missing], f"{tmp_path}/c", AllowAll(), allow_missing=True)
    write_plain(tmp_path / "a", {"x": np.zeros(2)})
    merge_bundles([missing, f"{tmp_path}/a"], f"{tmp_path}/c", AllowAll(), allow_missing=True)
    with TensorBundleReader(f"{tmp_path}/c", AllowAll()) as reader:
        assert reader.names == ["x"]


def test_a_name_twice(tmp_path: pathlib.Path) -> None:
    with TensorBundleWriter(str(tmp_path / "x"), AllowAll()) as writer:
        writer.add("a", np.zeros(2), DataType.DOUBLE)
        with pytest.raises(InvalidArgumentError, match="Adding duplicate key: a"):
            writer.add("a", np.zeros(2), DataType.DOUBLE)
        with pytest.raises(InvalidArgumentError, match="Adding duplicate key: a"):
            add_parts(writer, "a", (("2 0,1", np.zeros(1)),))
        for name in ("", "\0a"):
            with pytest.raises(InvalidArgumentError, match="needs a name"):
                writer.add(name, np.zeros(2), DataType.DOUBLE)
        with pytest.raises(UnimplementedError, match="holds a NoneType can't be written"):
            writer.add("v", np.array(None, object), DataType.VARIANT)


def test_nothing_is_left_of_a_bundle_that_was_not_finished(tmp_path: pathlib.Path) -> None:
    with TensorBundleWriter(str(tmp_path / "x"), AllowAll()) as writer:
        writer.add("a", np.zeros(2), DataType.DOUBLE)
    assert list(tmp_path.iterdir()) == []


def test_finishing_twice(tmp_path: pathlib.Path) -> None:
    with TensorBundleWriter(str(tmp_path / "x"), AllowAll()) as writer:
        writer.finish()
        with pytest.raises(FailedPreconditionError, match="is finished already"):
            writer.finish()


def test_a_folder_that_is_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        TensorBundleWriter(f"{tmp_path}/new/nope/x", AllowAll())
    assert caught.value.message == f"{tmp_path}/new/nope; No such file or directory"
    write_plain(tmp_path / "new" / "x", {"a": np.zeros(2)})  # one level is made
    with TensorBundleReader(f"{tmp_path}/new/x", AllowAll()) as reader:
        assert reader.names == ["a"]


def test_the_gate_is_asked_before_anything_is_written(tmp_path: pathlib.Path) -> None:
    with pytest.raises(PermissionDeniedError, match="may not write"):
        TensorBundleWriter(str(tmp_path / "x"), DenyAll())
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_several_blocks() -> None:
    entries = [(b"key %06d" % i, b"v" * 40 + b"%d" % i) for i in range(12_000)]
    table = write_table(entries)
    assert len(table) > 2 * BLOCK_BYTES
    assert list(read_table(table)) == entries


DTYPES = st.sampled_from(
    [np.dtype(t) for t in (np.float32, np.int8, np.uint64, np.bool_, np.complex64, np.float16)]
    + [np.dtype(ml_dtypes.bfloat16), np.dtype(object)]
)

NAMES = st.text(min_size=1, max_size=12).filter(lambda name: not name.startswith("\0"))


@st.composite
def tensors(draw: st.DrawFn) -> np.ndarray:
    dtype = draw(DTYPES)
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    count = int(np.prod(shape))
    if dtype.kind == "O":
        value = np.empty(count, object)
        value[:] = draw(st.lists(st.binary(max_size=200), min_size=count, max_size=count))
    else:
        size = count * dtype.itemsize
        raw = draw(st.binary(min_size=size, max_size=size))
        raw = bytes(byte & 1 for byte in raw) if dtype == np.bool_ else raw
        value = np.frombuffer(raw, dtype)
    return value.reshape(shape)


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(st.dictionaries(NAMES, tensors(), max_size=6))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, np.ndarray]
) -> None:
    prefix = tmp_path_factory.mktemp("bundle") / "x"
    write_plain(prefix, values)
    with TensorBundleReader(str(prefix), AllowAll()) as reader:
        assert reader.names == sorted(values)
        for name, value in values.items():
            got = reader.read(name)
            assert (got.dtype, got.shape) == (value.dtype, value.shape)
            # Bytes, not numbers: a NaN is to come back as it was.
            assert got.tolist() == value.tolist() or got.tobytes() == value.tobytes()
