"""What an attack costs the server that is attacked (Linux)."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

from bench.measure import resident_bytes

SAMPLE_SECONDS = 0.01


class MemoryWatch:
    """Samples the resident memory of a process, and kills it before the machine has none left.

    A context; `peak` is the most that was seen, in bytes.
    """

    def __init__(self, process_id: int, max_bytes: int) -> None:
        self._process_id, self._max_bytes = process_id, max_bytes
        self.before = self.peak = resident_bytes(process_id)
        self.is_killed = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            try:
                self.peak = max(self.peak, resident_bytes(self._process_id))
            except (OSError, IndexError):  # the process has ended
                return
            if self.peak > self._max_bytes:
                self.is_killed = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._process_id, signal.SIGKILL)
                return
