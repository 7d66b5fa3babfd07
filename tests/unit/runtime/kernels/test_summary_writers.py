"""What stands in event files; the recorded cases see only that they can be written."""

from __future__ import annotations

import pathlib

import pytest

import protos as pb
from runtime.api import PermissionDeniedError
from runtime.framework.io.file_gate import AllowAll, DenyAll
from runtime.framework.io.record_files import tf_records
from runtime.kernels.io.summary_writers import SummaryFileWriter


def events(folder: pathlib.Path) -> list[pb.Event]:
    (path,) = folder.iterdir()
    return [pb.Event.FromString(record) for _, record in tf_records(str(path), "")]


def test_a_file_begins_with_its_version_and_holds_what_was_flushed(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "logs"
    writer = SummaryFileWriter(str(folder), 10, 100_000, ".end", AllowAll())
    assert [event.file_version for event in events(folder)] == ["brain.Event:2"]
    writer.write(pb.Event(step=3).SerializeToString())
    assert len(events(folder)) == 1
    writer.flush()
    assert [event.step for event in events(folder)] == [0, 3]
    (path,) = folder.iterdir()
    assert path.name.startswith("events.out.tfevents.")
    assert path.name.endswith(".end")
    writer.close()


def test_a_full_queue_is_flushed(tmp_path: pathlib.Path) -> None:
    writer = SummaryFileWriter(str(tmp_path), 1, 100_000, "", AllowAll())
    for step in (1, 2):
        writer.write(pb.Event(step=step).SerializeToString())
    assert [event.step for event in events(tmp_path)] == [0, 1, 2]
    writer.close()


def test_the_gate_decides(tmp_path: pathlib.Path) -> None:
    with pytest.raises(PermissionDeniedError, match="This step may not write"):
        SummaryFileWriter(str(tmp_path / "logs"), 1, 1, "", DenyAll())
    assert list(tmp_path.iterdir()) == []
