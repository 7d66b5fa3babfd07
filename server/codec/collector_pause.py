"""Parse JSON with orjson while the garbage collector does not run.

It would visit the new lists and objects many times, and none of them can be garbage yet.
"""

from __future__ import annotations

import gc
import threading
from typing import Any

import orjson

# The size from which bodies are parsed on another thread, `step_runner.OFF_LOOP_BYTES`. That is not
# imported: `runstep run` reads JSON too, and the step runner takes 0.15 s to import.
LARGE_BODY_BYTES = 1 << 18


class _CollectorPause:
    """A context in which the garbage collector does not run; several threads may be in it.

    The last thread that leaves enables the collector, unless it was disabled before the first one
    entered.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the two fields below and the collector's switch
        self._inside = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._was_enabled:
                gc.enable()


_no_collection = _CollectorPause()


def load_part(text: bytes) -> Any:
    """Parse a part of a large JSON text with orjson; raise orjson.JSONDecodeError."""
    with _no_collection:
        return orjson.loads(text)
