"""Show on a terminal that a command is still running, and for how long it has run."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TextIO

_PATIENCE_SECONDS = 0.5  # the bar is not shown for shorter work
_FRAME_SECONDS = 0.1
_WIDTH = 24


class Progress:
    """Shows a moving bar on standard error while the `with` block runs, if that is a terminal."""

    def __init__(self, text: str, stream: TextIO | None = None) -> None:
        self._text = text
        self._stream = stream or sys.stderr
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Progress:
        """Show the bar from now on."""
        if self._stream.isatty():
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Remove the bar."""
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _draw(self) -> None:
        started = time.monotonic()
        if self._done.wait(_PATIENCE_SECONDS):
            return
        frame = 0
        while not self._done.wait(_FRAME_SECONDS):
            seconds = time.monotonic() - started
            self._stream.write(f"\r{self._text} [{bar(frame)}] {seconds:.1f} s")
            self._stream.flush()
            frame += 1
        self._stream.write("\r\x1b[K")  # go to the start of the line and erase it
        self._stream.flush()


def bar(frame: int) -> str:
    """Return a bar with a block that moves to and fro, because the amount of work is unknown."""
    position = frame % (2 * _WIDTH - 2)
    if position >= _WIDTH:
        position = 2 * _WIDTH - 2 - position
    return "." * position + "#" + "." * (_WIDTH - 1 - position)
