"""SessionCounts: counts the sessions that this process has created and the sessions still open.

TF: tensorflow/core/common_runtime/session.cc (the metric session_created)
"""

from __future__ import annotations

import collections
import threading


class SessionCounts:
    """Counters of sessions by runtime type. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _created and _destroyed
        self._created: collections.Counter[str] = collections.Counter()
        self._destroyed: collections.Counter[str] = collections.Counter()

    def session_created(self, runtime_type: str) -> None:
        """Count a new session."""
        with self._lock:
            self._created[runtime_type] += 1

    def session_closed(self, runtime_type: str) -> None:
        """Count a closed session. Must be called once for each session."""
        with self._lock:
            self._destroyed[runtime_type] += 1

    def created(self) -> dict[str, int]:
        """Return {runtime type: number of sessions created so far}."""
        with self._lock:
            return dict(self._created)

    def open(self) -> dict[str, int]:
        """Return {runtime type: number of open sessions}."""
        with self._lock:
            return {kind: self._created[kind] - self._destroyed[kind] for kind in self._created}


session_counts = SessionCounts()
