"""Files appear whole or not at all."""

from __future__ import annotations

import os
import pathlib
import threading

import pytest

from runtime.foundation.errors import NotFoundError, OutOfRangeError, ResourceExhaustedError
from runtime.framework.io.new_files import NewFile, append, write_file
from tests.faults import files_below, full_disk, no_descriptors


def test_a_file_gets_its_name_when_it_is_whole(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "new"
    with NewFile(str(path)) as new:
        new.write(b"some ")
        new.write(b"bytes")
        assert not path.exists()
        new.rename()
        assert path.read_bytes() == b"some bytes"
    assert files_below(tmp_path) == {"new": b"some bytes"}


def test_a_file_that_is_not_renamed_is_discarded(tmp_path: pathlib.Path) -> None:
    (tmp_path / "new").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), NewFile(str(tmp_path / "new")) as new:
        new.write(b"half")
        _ = 1 / 0
    assert files_below(tmp_path) == {"new": b"old"}


@pytest.mark.parametrize("size", [11, 100_000])  # within the buffer of the file, and beyond
def test_on_a_full_disk_the_old_file_remains(tmp_path: pathlib.Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with full_disk(10), pytest.raises(OutOfRangeError) as caught:
        write_file(str(path), bytes(size))
    assert caught.value.message == f"{path}; File too large"
    assert files_below(tmp_path) == {"file": b"old"}


def test_what_is_no_file_is_written_directly(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ResourceExhaustedError, match="/dev/full; No space left on device"):
        write_file("/dev/full", b"x")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_file(str(pipe), b"through")
    reader.join()
    assert read == [b"through"]
    assert pipe.is_fifo()


def test_links_and_modes_remain(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(0o600)
    (tmp_path / "link").symlink_to("file")
    write_file(str(tmp_path / "link"), b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_what_the_system_refuses_is_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NotFoundError, match="nowhere/file; No such file or directory"):
        write_file(str(tmp_path / "nowhere" / "file"), b"x")
    with no_descriptors(), pytest.raises(ResourceExhaustedError, match="Too many open files"):
        write_file(str(tmp_path / "file"), b"x")
    assert files_below(tmp_path) == {}


def test_what_is_appended_is_appended_whole(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log"
    with path.open("ab", buffering=0) as file:
        append(file, str(path), b"first")
        with full_disk(8), pytest.raises(OutOfRangeError, match="log; File too large"):
            append(file, str(path), b"second")
        assert path.read_bytes() == b"first"
        append(file, str(path), b"third")
    assert path.read_bytes() == b"firstthird"
