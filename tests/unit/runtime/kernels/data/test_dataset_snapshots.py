"""SnapshotDataset: which runs are read, written or passed through, and restored iterators."""

from __future__ import annotations

import pathlib
import time
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import OpError, SessionOptions, new_session
from runtime.foundation.errors import ResourceExhaustedError
from runtime.framework.io.file_gate import FolderGate
from runtime.framework.io.snapshot_record_files import SnapshotRecordFile
from tests.conformance.cases.data.datasets import DatasetGraph
from tests.unit.runtime.kernels.data.saved_iterators import SavedIterator


def snapshot(g: DatasetGraph, path: pathlib.Path, stop: int, start: int = 0, **attrs: Any) -> Any:
    attrs = {"snapshot_name": "run", **attrs}
    g.shapes = ((),)
    source = g.range(stop, start)
    return g.data("SnapshotDataset", source, np.array(str(path).encode(), object), **attrs)


def taken(path: pathlib.Path, count: int, start: int = 0, **attrs: Any) -> list[int]:
    """Return the first elements of a new iterator over a snapshot of range(start, start + 5)."""
    g = DatasetGraph()
    iterator = SavedIterator(g, snapshot(g, path, start + 5, start, **attrs))
    found = iterator.take(count)
    iterator.close()
    return found


def metadata(path: pathlib.Path) -> pb.SnapshotMetadataRecord:
    data = (path / "custom-run" / "snapshot.metadata").read_bytes()
    return pb.SnapshotMetadataRecord.FromString(data)


@pytest.mark.parametrize("compression", ["", "GZIP", "SNAPPY"])
def test_a_complete_run_is_read(compression: str, tmp_path: pathlib.Path) -> None:
    assert taken(tmp_path, 5, compression=compression) == [0, 1, 2, 3, 4]
    assert metadata(tmp_path).finalized
    assert taken(tmp_path, 5, start=10, compression=compression) == [0, 1, 2, 3, 4]
    assert taken(tmp_path, 5, start=10, compression=compression, mode="passthrough")[0] == 10


def test_a_run_that_is_not_complete_is_passed_through_until_it_expires(
    tmp_path: pathlib.Path,
) -> None:
    assert taken(tmp_path, 2) == [0, 1]
    assert not metadata(tmp_path).finalized
    assert taken(tmp_path, 5, start=10) == [10, 11, 12, 13, 14]
    assert not metadata(tmp_path).finalized
    old = metadata(tmp_path)
    old.creation_timestamp = int((time.time() - 100) * 1e6)
    (tmp_path / "custom-run" / "snapshot.metadata").write_bytes(old.SerializeToString())
    assert taken(tmp_path, 5, start=10, pending_snapshot_expiry_seconds=99) == [*range(10, 15)]
    assert metadata(tmp_path).finalized
    assert taken(tmp_path, 5) == [10, 11, 12, 13, 14]


def test_files_end_at_the_size_of_a_shard(tmp_path: pathlib.Path) -> None:
    assert taken(tmp_path, 5, shard_size_bytes=8) == [0, 1, 2, 3, 4]
    assert len(list((tmp_path / "custom-run" / "custom").iterdir())) == 5
    orders = [
        taken(tmp_path, 5, shuffle_on_read=True, seed=seed, seed2=seed2)
        for seed, seed2 in ((1, 0), (1, 0), (2, 0), (0, 3))
    ]
    assert all(sorted(each) == [0, 1, 2, 3, 4] for each in orders)
    assert orders[0] == orders[1]
    assert len({tuple(each) for each in orders}) > 1


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_a_restored_iterator_goes_on(is_stored: bool, count: int, tmp_path: pathlib.Path) -> None:
    if is_stored:
        taken(tmp_path, 5, shard_size_bytes=16)
    g = DatasetGraph()
    iterator = SavedIterator(g, snapshot(g, tmp_path, 5, shard_size_bytes=16))
    assert iterator.take(count) == [*range(count)]
    saved = iterator.save()
    for _ in range(2):
        assert iterator.take(5 - count) == [*range(count, 5)]
        with pytest.raises(OpError, match="End of sequence"):
            iterator.take(1)
        iterator.restore(saved)
    iterator.close()
    assert taken(tmp_path, 5, start=10) == [0, 1, 2, 3, 4]


def test_files_are_written_only_into_allowed_folders(tmp_path: pathlib.Path) -> None:
    g = DatasetGraph()
    attrs = {"output_types": g.types, "output_shapes": ((),)}
    iterator = g.add("IteratorV2", shared_name="it", container="", **attrs)[0]
    g.add("MakeIterator", snapshot(g, tmp_path / "x", 3), iterator, name="start")
    g.add("IteratorGetNext", iterator, name="next", **attrs)
    session = new_session(SessionOptions(files=FolderGate([str(tmp_path)])))
    session.create(g.graph_def)
    session.run({}, (), ("start",))
    with pytest.raises(OpError, match="This step may not write"):
        session.run({}, ("next:0",))
    session.close()
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ([pb.DT_FLOAT], "Type: 0 doesn't match. Snapshot: 1; dataset: 9"),
        ([], "Expected number of dtypes: 1 but number in snapshot: 0"),
    ],
)
def test_a_snapshot_of_other_types_is_refused(
    types: list[pb.DataType], message: str, tmp_path: pathlib.Path
) -> None:
    taken(tmp_path, 5)
    changed = metadata(tmp_path)
    del changed.dtype[:]
    changed.dtype.extend(types)
    (tmp_path / "custom-run" / "snapshot.metadata").write_bytes(changed.SerializeToString())
    with pytest.raises(OpError, match=message):
        taken(tmp_path, 1)


def test_a_run_without_files_is_refused(tmp_path: pathlib.Path) -> None:
    taken(tmp_path, 5)
    for file in (tmp_path / "custom-run" / "custom").iterdir():
        file.unlink()
    with pytest.raises(OpError, match="Could not find any files in dir"):
        taken(tmp_path, 1)


def test_a_run_that_lacks_an_element_never_becomes_complete(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: SnapshotRecordFile, element: object) -> None:
        raise ResourceExhaustedError("No space left on device")

    g = DatasetGraph()
    iterator = SavedIterator(g, snapshot(g, tmp_path, 5))
    assert iterator.take(1) == [0]
    with monkeypatch.context() as patch:
        patch.setattr(SnapshotRecordFile, "write", full)
        with pytest.raises(OpError, match="No space left"):
            iterator.take(1)
    for _ in range(5):
        with pytest.raises(OpError, match="No space left"):
            iterator.take(1)
    iterator.close()
    assert not metadata(tmp_path).finalized


def test_an_error_of_the_input_does_not_end_the_run(tmp_path: pathlib.Path) -> None:
    g = DatasetGraph()
    g.shapes = ((),)
    divide = g.function("divide", "FloorDiv", 2, g.types[0])
    swapped = g.graph_def.library.function[-1]
    swapped.node_def[0].input[0], swapped.node_def[0].input[1] = "x1", "x0"
    mapped = g.data("MapDataset", g.range(3), [g.long(6)], f=divide)
    path = np.array(str(tmp_path).encode(), object)
    iterator = SavedIterator(g, g.data("SnapshotDataset", mapped, path, snapshot_name="run"))
    with pytest.raises(OpError, match="division by zero"):
        iterator.take(1)
    assert iterator.take(2) == [6, 3]
    iterator.close()
    assert taken(tmp_path, 2) == [6, 3]
