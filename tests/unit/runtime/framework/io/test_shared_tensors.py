"""Tensors of a checkpoint in a file that processes share: views of it, checked, never written."""

from __future__ import annotations

import logging
import os
import pathlib
from collections.abc import Iterator

import numpy as np
import pytest

from runtime.api import (
    CancellationManager,
    DataLossError,
    DataType,
    OutOfRangeError,
    RunRequest,
)
from runtime.errors import CancelledError
from runtime.foundation.shared_files import shared_files
from runtime.framework.held_bytes import OBJECT_BYTES, value_bytes
from runtime.framework.io.file_gate import AllowAll
from runtime.framework.io.shared_tensors import LEAST_BYTES, LEAST_FILE_BYTES, shared_tensors
from runtime.framework.io.tensor_bundle_reader import TensorBundleReader
from runtime.framework.memory_account import MemoryAccount
from tests.conformance.case import Graph
from tests.faults import full_disk
from tests.unit.runtime.framework.io.bundle_files import write_plain
from tests.unit.runtime.sessions.graphs import direct_session

LARGE = np.arange(LEAST_FILE_BYTES // 4, dtype=np.float32).reshape(2, -1)
TENSORS = {
    "a": np.array([1, 2, 3], np.int8),  # so that what follows is not aligned in the checkpoint
    "large": LARGE,
    "large_again": LARGE,
    "limit": np.ones(LEAST_BYTES, np.bool_),
    "small": np.ones(LEAST_BYTES - 1, np.int8),
    "strings": np.full(LEAST_BYTES, b"string", object),
    "wide": np.linspace(0, 1, LEAST_BYTES).astype(np.complex128),
}
SHARED = {"large", "large_again", "limit", "wide"}


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    path = tmp_path / "shared"
    path.mkdir()
    shared_files.use_folder(path)
    yield path
    shared_files.use_folder(None)


@pytest.fixture
def prefix(tmp_path: pathlib.Path) -> pathlib.Path:
    write_plain(tmp_path / "model", TENSORS)
    return tmp_path / "model"


def data_of(prefix: pathlib.Path) -> pathlib.Path:
    return prefix.with_suffix(".data-00000-of-00001")


def shared(prefix: pathlib.Path, *names: str) -> dict[str, np.ndarray]:
    with TensorBundleReader(str(prefix), AllowAll()) as reader:
        return shared_tensors(reader, names or tuple(TENSORS), lambda: None)


def files_in(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.iterdir())


def mapped(path: pathlib.Path) -> int:
    """How many mappings of a file the process has."""
    return pathlib.Path("/proc/self/maps").read_text().count(str(path))


def test_nothing_is_shared_without_a_folder(prefix: pathlib.Path) -> None:
    assert shared(prefix) == {}


def test_large_tensors_are_views_of_one_file(prefix: pathlib.Path, folder: pathlib.Path) -> None:
    first, second = shared(prefix), shared(prefix)
    (file,) = files_in(folder)
    assert mapped(file) == 2  # this process has it twice, as two processes would
    for values in (first, second):
        assert values.keys() == SHARED
        assert values["large"] is values["large_again"]
        for name, value in values.items():
            assert value.dtype == TENSORS[name].dtype
            np.testing.assert_array_equal(value, TENSORS[name])
            assert value.flags.aligned and not value.flags.writeable
            assert value.ctypes.data % 64 == 0
            with pytest.raises(ValueError, match="WRITEABLE"):
                value.flags.writeable = True
    assert file.stat().st_size < LARGE.nbytes + 2 * TENSORS["wide"].nbytes  # equal ones are in once


def test_arrays_count_by_their_own_bytes(prefix: pathlib.Path, folder: pathlib.Path) -> None:
    values = shared(prefix)
    assert value_bytes(values["large"], values["large_again"]) == LARGE.nbytes + 2 * OBJECT_BYTES
    account = MemoryAccount("the test")
    account.hold(values["large"])
    account.hold(values["large_again"])
    assert account.used == LARGE.nbytes
    values.clear()
    assert account.used == 0


def test_the_file_goes_with_the_last_array(prefix: pathlib.Path, folder: pathlib.Path) -> None:
    first, second = shared(prefix), shared(prefix)
    (file,) = files_in(folder)
    kept = first["limit"][1:]
    del first, second
    assert mapped(file) == 1
    assert kept.all()
    del kept
    assert files_in(folder) == []
    assert mapped(file) == 0


def test_a_checkpoint_that_shrinks_is_still_there(
    prefix: pathlib.Path, folder: pathlib.Path
) -> None:
    values = shared(prefix)
    os.truncate(data_of(prefix), 0)
    np.testing.assert_array_equal(values["wide"], TENSORS["wide"])
    with pytest.raises(OutOfRangeError, match="Read less bytes than requested"):
        shared(prefix)


def test_a_checkpoint_that_changes_has_another_file(
    prefix: pathlib.Path, folder: pathlib.Path
) -> None:
    before = shared(prefix)
    write_plain(prefix, {**TENSORS, "wide": TENSORS["wide"] + 1})
    after = shared(prefix)
    assert len(files_in(folder)) == 2
    np.testing.assert_array_equal(after["wide"], before["wide"] + 1)


def test_a_damaged_checkpoint_is_refused(prefix: pathlib.Path, folder: pathlib.Path) -> None:
    whole = shared(prefix)
    with data_of(prefix).open("r+b") as file:
        file.seek(1000)
        file.write(b"damage")
    with pytest.raises(DataLossError, match="Checksum does not match"):
        shared(prefix)
    np.testing.assert_array_equal(whole["large"], LARGE)
    assert len(files_in(folder)) == 1


def test_a_damaged_file_is_refused(prefix: pathlib.Path, folder: pathlib.Path) -> None:
    values = shared(prefix)
    (file,) = files_in(folder)
    contents = bytearray(file.read_bytes())
    contents[-1] ^= 1
    file.write_bytes(contents)
    with pytest.raises(DataLossError, match="Checksum does not match"):
        shared(prefix)
    del values


def test_a_full_disk_shares_nothing(
    prefix: pathlib.Path, folder: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    with full_disk(LEAST_FILE_BYTES // 2), caplog.at_level(logging.WARNING):
        assert shared(prefix) == {}
    assert "are not shared: File too large" in caplog.text
    assert files_in(folder) == []
    assert shared(prefix).keys() == SHARED


def test_little_is_not_shared(prefix: pathlib.Path, folder: pathlib.Path) -> None:
    assert shared(prefix, "a", "limit", "small", "strings") == {}
    assert files_in(folder) == []


def test_sharing_can_be_cancelled(prefix: pathlib.Path, folder: pathlib.Path) -> None:
    cancellation = CancellationManager()
    cancellation.cancel(CancelledError("cancelled"))
    with (
        TensorBundleReader(str(prefix), AllowAll()) as reader,
        pytest.raises(CancelledError),
    ):
        shared_tensors(reader, TENSORS, cancellation.check)
    assert files_in(folder) == []


def test_an_update_of_a_restored_variable_writes_into_a_copy(
    prefix: pathlib.Path, folder: pathlib.Path
) -> None:
    graph = Graph()
    inputs = [np.array(text, object) for text in (str(prefix).encode(), [b"large"], [b""])]
    (value,) = graph.add("RestoreV2", *inputs, dtypes=[DataType.FLOAT])
    (handle,) = graph.add("VarHandleOp", name="v", dtype=DataType.FLOAT, shape=LARGE.shape)
    graph.add("AssignVariableOp", handle, value, name="assign", dtype=DataType.FLOAT)
    graph.add("AssignAddVariableOp", handle, np.ones_like(LARGE), name="add", dtype=DataType.FLOAT)
    graph.add("ReadVariableOp", handle, name="read", dtype=DataType.FLOAT)
    session = direct_session(graph.graph_def)
    session.run({}, [], ["assign"])
    # The array of the variable itself, of which Session.run returns a copy.
    (restored,) = session.run_async(RunRequest({}, ["read:0"])).result()
    (file,) = files_in(folder)
    before = file.read_bytes()
    session.run({}, [], ["add"])
    (updated,) = session.run({}, ["read:0"])
    np.testing.assert_array_equal(restored, LARGE)
    np.testing.assert_array_equal(updated, LARGE + 1)
    assert file.read_bytes() == before
    del restored
    assert files_in(folder) == []
