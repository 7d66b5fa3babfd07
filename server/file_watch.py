"""FileWatch: notices that files have changed, so that they are read again."""

from __future__ import annotations

import os
from collections.abc import Iterable


class FileWatch:
    """The state of some files, as it was when `has_changed` was last called."""

    def __init__(self, paths: Iterable[str | None]) -> None:
        self._paths = [path for path in paths if path is not None]
        self._state = self._now()

    def has_changed(self) -> bool:
        """Return whether a file was written, replaced, removed or created since the last call."""
        before, self._state = self._state, self._now()
        return self._state != before

    def _now(self) -> list[tuple[int, int, int] | None]:
        return [_state(path) for path in self._paths]


def _state(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # follows links: mounted secrets are replaced by changing a link
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
