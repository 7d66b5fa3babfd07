import io
import os
import pty
import threading

import pytest

from server.commands.progress import Done, Progress, bar, filled


def test_the_bar_goes_to_and_fro():
    frames = [bar(frame) for frame in range(46)]
    assert frames[0] == "#" + "." * 23 and frames[23] == "." * 23 + "#"
    assert frames[45] == frames[1] and bar(46) == frames[0]


@pytest.mark.parametrize(("part", "blocks"), [(-1, 0), (0, 0), (0.5, 12), (1, 24), (7, 24)])
def test_the_bar_is_filled(part, blocks):
    assert filled(part) == "#" * blocks + "." * (24 - blocks)


def test_nothing_is_written_of_short_work():
    stream = io.StringIO()
    with Progress("Loading", stream):
        pass
    assert stream.getvalue() == ""


class Lines(io.StringIO):
    """A file that sets `written` at the second line."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def flush(self):
        if self.getvalue().count("\n") >= 2:
            self.written.set()


@pytest.mark.parametrize(
    ("done", "line"),
    [(Done(None), "Loading a?b: 0 s"), (Done(0.25, "7 requests"), "Loading a?b: 25%, 0 s, 7 req")],
)
def test_lines_without_a_terminal(done, line):
    stream = Lines()
    with Progress("Loading a\x1bb", stream, lambda: done, plain_seconds=0.001):
        assert stream.written.wait(30)
    assert stream.getvalue().startswith(line) and "\r" not in stream.getvalue()


def test_a_terminal_has_one_line_that_is_removed():
    master, slave = pty.openpty()
    with os.fdopen(master, "rb", 0) as screen, os.fdopen(slave, "w") as stream:
        with Progress("Measuring", stream, lambda: Done(0.5, "9 requests"), patience=0):
            shown = b""
            while shown.count(b"\r") < 3:
                shown += screen.read(1000)
        shown += screen.read(1000)
    first = shown.split(b"\r")[1].decode()
    assert first.startswith("Measuring [############............]  50% 0.")
    assert first.endswith(" s, 9 requests\x1b[K")
    assert b"\n" not in shown and shown.endswith(b"\r\x1b[K")


def test_a_line_fits_the_terminal():
    import fcntl
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
    with (
        os.fdopen(master, "rb", 0) as screen,
        os.fdopen(slave, "w") as stream,
        Progress("Loading /a/very/long/path/of/a/model", stream, patience=0),
    ):
        shown = screen.read(1000)
    assert shown.startswith(b"\rLoading /a/very/lon\x1b[K")
