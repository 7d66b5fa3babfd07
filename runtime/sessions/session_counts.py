"""How many sessions this process has made, by the kind of session, and how many of them live.

TF: tensorflow/core/common_runtime/session.cc (the metric session_created)
"""

from __future__ import annotations

import collections
import threading


class SessionCounts:
    """Figures of the sessions of one process. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the two below
        self._created: collections.Counter[str] = collections.Counter()
        self._destroyed: collections.Counter[str] = collections.Counter()

    def session_created(self, runtime_type: str) -> None:
        """Count a session that was made."""
        with self._lock:
            self._created[runtime_type] += 1

    def session_closed(self, runtime_type: str) -> None:
        """Count the first close of a session."""
        with self._lock:
            self._destroyed[runtime_type] += 1

    def created(self) -> dict[str, int]:
        """Sessions made so far, by runtime type."""
        with self._lock:
            return dict(self._created)

    def open(self) -> dict[str, int]:
        """Sessions made and not closed yet, by runtime type."""
        with self._lock:
            return {kind: self._created[kind] - self._destroyed[kind] for kind in self._created}


session_counts = SessionCounts()
