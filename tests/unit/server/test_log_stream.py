"""The log on a full disk, or without a reader: lines are lost, and later ones say so."""

from __future__ import annotations

import collections
import contextlib
import os
import pathlib
import pty
import re
import socket
import subprocess
import sys
import threading
import tty
from collections.abc import Callable, Iterator

import pytest

from server import log_stream as module
from server.log_stream import WAIT_SECONDS, LogStream, log_stream
from tests.faults import full_disk, full_pipe
from tests.integration.server_process import ROOT

Opened = Callable[[int], LogStream]


@pytest.fixture
def opened() -> Iterator[Opened]:
    with contextlib.ExitStack() as streams:
        yield lambda descriptor: streams.enter_context(contextlib.closing(LogStream(descriptor)))


def test_lost_lines_are_counted(opened: Opened, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    stream = opened(descriptor)
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
    has_proc: bool, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_proc:
        monkeypatch.setattr(module, "_writer", module._writer_where_room_is)
    monkeypatch.setattr(module, "VAIN_SECONDS", 60.0)
    with full_pipe() as (reader, writer):
        stream = opened(writer)
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


def a_terminal() -> tuple[int, int]:
    reader, writer = pty.openpty()
    tty.setraw(writer)  # which leaves ends of lines as they are
    return reader, writer


def a_socket() -> tuple[int, int]:
    first, second = socket.socketpair()
    return first.detach(), second.detach()


@pytest.mark.parametrize("length", [80, 1000, 5000])
@pytest.mark.parametrize("ends", [os.pipe, a_terminal, a_socket])
def test_what_nobody_reads_blocks_no_line(
    ends: Callable[[], tuple[int, int]],
    length: int,
    opened: Opened,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "VAIN_SECONDS", 60.0)
    reader, writer = ends()
    try:
        stream = opened(writer)
        line = "x" * (length - 1) + "\n"
        for _ in range(1_000_000 // length):
            stream.write(line)
        os.set_blocking(reader, False)
        text = b""
        with contextlib.suppress(BlockingIOError):
            while True:
                text += os.read(reader, 1 << 20)
        stream.write("last\n")
        end = os.read(reader, 100)
        found = re.fullmatch(rb"\n?(\d+) lines of the log were lost\nlast\n", end)
        assert found is not None, end
        assert int(found[1]) == 1_000_000 // length - text.count(b"\n")
    finally:
        os.close(reader)
        os.close(writer)


def test_a_line_waits_for_a_reader_that_is_slow(opened: Opened) -> None:
    with full_pipe() as (reader, writer):
        stream = opened(writer)
        thread = threading.Thread(target=stream.write, args=("waits\n",))
        thread.start()
        assert os.read(reader, 1 << 20).isspace()
        thread.join()
        assert os.read(reader, 100) == b"waits\n"


def test_after_a_line_that_waited_in_vain_others_wait_again_later(
    opened: Opened,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    with full_pipe() as (_, writer):
        stream = opened(writer)
        waited = []
        for pause in (0.0, 0.0, 0.5, 0.6, 0.0):
            clock.now += pause
            began = clock.now
            stream.write("lost\n")
            waited.append(round(clock.now - began, 1))
    assert waited == [WAIT_SECONDS, 0, 0, WAIT_SECONDS, 0]


class Clock:
    """Stands for the module `time`: a sleep takes no time."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


_WRITER = """
import sys
from server.log_stream import log_stream
stream = log_stream()
for _ in range(int(sys.argv[2])):
    stream.write(sys.argv[1] * (int(sys.argv[3]) - 1) + "\\n")
"""


@pytest.mark.parametrize("length", [80, 20_000])
@pytest.mark.parametrize("mode", ["wb", "ab"])
def test_lines_of_several_processes_are_whole_in_a_file(
    mode: str, length: int, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "log"
    with open(path, mode) as log:
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", _WRITER, letter, "300", str(length)], stderr=log, cwd=ROOT
            )
            for letter in "abc"
        ]
        assert [process.wait(60) for process in processes] == [0, 0, 0]
    lines = collections.Counter(path.read_text().splitlines())
    assert lines == {letter * (length - 1): 300 for letter in "abc"}


def test_lines_of_several_processes_reach_a_pipe_that_is_read() -> None:
    reader, writer = os.pipe()
    with open(reader, "rb") as log:
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", _WRITER, letter, "500", "3000"], stderr=writer, cwd=ROOT
            )
            for letter in "ab"
        ]
        os.close(writer)
        lines = collections.Counter(log.read().splitlines())
        assert [process.wait(60) for process in processes] == [0, 0]
    assert lines == {letter * 2999: 500 for letter in (b"a", b"b")}


def test_a_substitute_of_standard_error_is_used_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert log_stream() is sys.stderr
    monkeypatch.setattr(sys, "stderr", None)
    assert log_stream() is None
