"""Log that a version is loaded: its size, how long it goes on, and the memory that it takes."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from types import TracebackType

from runtime.api import resident_bytes
from server.models.model_source import Files

_log = logging.getLogger(__name__)
FIRST_SECONDS = 5.0  # a load that takes longer is reported
FURTHER_SECONDS = 15.0  # and then again after each such time


class LoadLog:
    """Logs a load from the begin of the `with` block to its end; `done` at its success."""

    def __init__(self, name: str, version: int, folder: Path, files: Files) -> None:
        self._what = f"version {version} of model {name} from {folder}"
        self._size = sum(size for _, _, size, _ in files)
        self._ended = threading.Event()
        self._started = time.monotonic()
        self._before = resident_bytes() or 0

    def __enter__(self) -> LoadLog:
        """Log that the load begins."""
        _log.info("Loading %s (%s)", self._what, megabytes(self._size))
        threading.Thread(target=self._report, name="load_log", daemon=True).start()
        return self

    def done(self) -> None:
        """Log that the load has succeeded."""
        _log.info(
            "Loaded %s in %.3f s; the process has %s more memory",
            self._what, self._seconds, megabytes(self._more),
        )  # fmt: skip

    def progress(self) -> dict[str, object]:
        """Return how far the load is: bytes of memory taken since, of the bytes of its files."""
        done = min(self._more, self._size)
        return {
            "done_bytes": done, "total_bytes": self._size, "seconds": self._seconds,
            "what": "reading" if done < self._size else "preparing",
        }  # fmt: skip

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the reports."""
        self._ended.set()

    def _report(self) -> None:
        wait = FIRST_SECONDS
        while not self._ended.wait(wait):
            _log.info(
                "Still loading %s: %.0f s, %s more memory so far",
                self._what, self._seconds, megabytes(self._more),
            )  # fmt: skip
            wait = FURTHER_SECONDS

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def _more(self) -> int:
        return max(0, (resident_bytes() or 0) - self._before)


def megabytes(size: int) -> str:
    """Return a number of bytes in words, in MB of a million bytes."""
    return f"{size / 1e6:.0f} MB" if size >= 10e6 else f"{size / 1e6:.1f} MB"
