"""The log on a full disk, or without a reader: lines are lost, and later ones say so."""

from __future__ import annotations

import os
import pathlib
import sys

import pytest

from server import log_stream as module
from server.log_stream import LogStream, log_stream
from tests.faults import full_disk, full_pipe


def test_lost_lines_are_counted(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    stream = LogStream(descriptor)
    stream.write("first\n")
    with full_disk(8):
        for number in range(3):
            stream.write(f"lost {number}\n")
    stream.write("second\n")
    stream.write("third \udc80\n")
    stream.flush()
    os.close(descriptor)
    stream.write("nobody reads this\n")
    text = path.read_text()
    assert text.startswith("first\n")
    assert text.endswith("3 lines of the log were lost\nsecond\nthird \\udc80\n")


@pytest.mark.parametrize("has_proc", [True, False])
def test_a_pipe_that_nobody_reads_blocks_no_line(
    has_proc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_proc:
        monkeypatch.setattr(module, "_that_never_blocks", lambda descriptor: descriptor)
    with full_pipe() as (reader, writer):
        stream = LogStream(writer)
        for number in range(300):  # which would take half a minute if each waited
            stream.write(f"lost {number}\n")
        assert os.read(reader, 1 << 20).isspace()
        os.set_blocking(reader, False)
        stream.write("short\n")
        assert os.read(reader, 100) == b"300 lines of the log were lost\nshort\n"
        stream.write("x" * 100_000 + "\n")  # more than a pipe has room for
        assert os.read(reader, 1 << 20)[:1] == b"x"
        stream.write("last\n")
        assert os.read(reader, 100) == b"\n1 lines of the log were lost\nlast\n"
        assert os.get_blocking(writer)  # it is the one of whoever started the server


def test_processes_that_write_to_the_same_full_pipe_do_not_block() -> None:
    with full_pipe() as (reader, writer):
        os.read(reader, 1 << 12)  # room for one of them
        first, second = LogStream(writer), LogStream(writer)
        first.write("f" * 4095 + "\n")
        assert second._room.poll(0) == []
        with pytest.raises(BlockingIOError):  # though it had found room before
            os.write(second._descriptor, b"s")


def test_a_substitute_of_standard_error_is_used_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert log_stream() is sys.stderr
    monkeypatch.setattr(sys, "stderr", None)
    assert log_stream() is None
