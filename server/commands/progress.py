"""Show on standard error that a command is still running, for how long, and how far it has come."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, TextIO

_PATIENCE_SECONDS = 0.5  # the bar is not shown for shorter work
_FRAME_SECONDS = 0.1
_PLAIN_SECONDS = 10.0  # between the lines that are written where there is no terminal
_WIDTH = 24
_ERASE = "\r\x1b[K"  # go to the start of the line and erase it


class Done(NamedTuple):
    """How far the work is: a part of 1, or None if that is unknown, and words about it."""

    part: float | None
    words: str = ""


def _unknown() -> Done:
    return Done(None)


class Progress:
    """Shows while the `with` block runs that it does.

    On a terminal this is one line with a bar, which is written anew and removed at the end; in a
    file or a pipe, a line every ten seconds. `done` is called for each, from another thread.
    """

    def __init__(
        self,
        text: str,
        stream: TextIO | None = None,
        done: Callable[[], Done] = _unknown,
        patience: float = _PATIENCE_SECONDS,
        plain_seconds: float = _PLAIN_SECONDS,
    ) -> None:
        self._text = "".join(each if each.isprintable() else "?" for each in text)
        self._stream = stream or sys.stderr
        self._progress = done
        self._patience = patience
        self._plain_seconds = plain_seconds
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._lock = threading.Lock()  # held while something is written
        draw = self._draw if self._stream.isatty() else self._write_lines
        self._thread = threading.Thread(target=draw, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        """Show the progress from now on."""
        self._started = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Remove the bar."""
        self._ended.set()
        self._thread.join()

    def print(self, text: str) -> None:
        """Print a line on standard output; the bar is below it."""
        with self._lock:
            if self._stream.isatty():
                self._write(_ERASE)
            print(text, flush=True)

    def _draw(self) -> None:
        if self._ended.wait(self._patience):
            return
        frame = 0
        while not self._ended.wait(_FRAME_SECONDS):
            with self._lock:
                self._write("\r" + self._fitting(self._line(frame)) + "\x1b[K")
            frame += 1
        self._write(_ERASE)

    def _line(self, frame: int) -> str:
        done = self._progress()
        if done.part is None:
            shown = f"[{bar(frame)}]"
        else:
            shown = f"[{filled(done.part)}] {done.part:4.0%}"
        return f"{self._text} {shown} {self._seconds:.1f} s{_after(done.words)}"

    def _write_lines(self) -> None:
        while not self._ended.wait(self._plain_seconds):
            done = self._progress()
            part = "" if done.part is None else f"{done.part:.0%}, "
            with self._lock:
                self._write(f"{self._text}: {part}{self._seconds:.0f} s{_after(done.words)}\n")

    def _fitting(self, line: str) -> str:
        """Shorten the line to the terminal's width: a line that wraps can't be written anew."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except OSError:
            return line
        return line[: columns - 1] if columns > 0 else line

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # nobody reads it any more
            self._ended.set()

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._started


def _after(words: str) -> str:
    return f", {words}" if words else ""


def bar(frame: int) -> str:
    """Return a bar with a block that moves to and fro, because the amount of work is unknown."""
    position = frame % (2 * _WIDTH - 2)
    if position >= _WIDTH:
        position = 2 * _WIDTH - 2 - position
    return "." * position + "#" + "." * (_WIDTH - 1 - position)


def filled(part: float) -> str:
    """Return a bar that is filled up to `part` of 1."""
    blocks = round(_WIDTH * min(1.0, max(0.0, part)))
    return "#" * blocks + "." * (_WIDTH - blocks)
