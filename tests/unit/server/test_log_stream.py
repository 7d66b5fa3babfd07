"""The log on a full disk: lines are lost, and later ones say so."""

from __future__ import annotations

import os
import pathlib
import sys

import pytest

from server.log_stream import LogStream, log_stream
from tests.faults import full_disk


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


def test_a_substitute_of_standard_error_is_used_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert log_stream() is sys.stderr
    monkeypatch.setattr(sys, "stderr", None)
    assert log_stream() is None
