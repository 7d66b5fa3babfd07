"""Show on a terminal that something long is going on, and for how long."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TextIO

_PATIENCE_SECONDS = 0.5  # what is over sooner needs no bar
_FRAME_SECONDS = 0.1
_WIDTH = 24


class Progress:
    """Within it, a bar moves on standard error; nothing is written when that is no terminal."""

    def __init__(self, text: str, stream: TextIO | None = None) -> None:
        self._text = text
        self._stream = stream or sys.stderr
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Progress:
        """Begin."""
        if self._stream.isatty():
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End, and take the bar away."""
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
        self._stream.write("\r\x1b[K")  # to the start of the line, and erase it
        self._stream.flush()


def bar(frame: int) -> str:
    """A block that goes to and fro: how much there is to do is not known."""
    position = frame % (2 * _WIDTH - 2)
    if position >= _WIDTH:
        position = 2 * _WIDTH - 2 - position
    return "." * position + "#" + "." * (_WIDTH - 1 - position)
