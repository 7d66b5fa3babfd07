"""Signals that arrive before the server can drain: the process ends at once, with exit code 0.

Without a handler, SIGTERM would end the process with a code of its own, would do nothing to the
first process of a container, and SIGINT would raise KeyboardInterrupt in the middle of an import.
While it starts, the server has nothing to finish. Only before this module runs, in the first moment
of the interpreter, the signals have their default effect.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def end_at_signals() -> None:
    """End the process at the first SIGTERM or SIGINT, until other handlers are set."""
    for each in SIGNALS:
        signal.signal(each, _end)


def _end(number: int, frame: FrameType | None) -> None:
    # Not SystemExit: an import, or a callback whose exceptions are ignored, may be running.
    os._exit(0)
