"""Merging of bundles; TensorFlow's files are matched byte for byte."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_gate import AllowAll
from runtime.framework.io.tensor_bundle_merge import merge_bundles
from runtime.framework.io.tensor_bundle_reader import TensorBundleReader
from runtime.framework.io.tensor_bundle_writer import TensorBundleWriter
from tests import checkpoint_tensors as given
from tests.unit.runtime.framework.io.bundle_files import add_parts, assert_equal_files, write_plain


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
