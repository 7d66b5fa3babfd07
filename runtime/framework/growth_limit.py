"""GrowthLimit: refuses what would let the resources of a session hold too many bytes.

Resources that can grow by many small values report the growth. The bytes of all resources are
summed only after each `_STEP` bytes of growth, so that a report costs next to nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from runtime.foundation.errors import ResourceExhaustedError

_STEP = 1 << 20  # bytes by which resources may grow between two sums
_SHARE = 64  # a limit below `_STEP` times this is checked after each such share of it


class GrowthLimit:
    """The most bytes that the resources of one manager may hold; `count` returns what they hold.

    Guarantees: any thread may call `grow`; a race may lose a report, but not a refusal. While
    `max_bytes` is `sys.maxsize`, nothing is summed.
    """

    __slots__ = ("_count", "_grown", "max_bytes", "setting")

    def __init__(self, count: Callable[[], int], max_bytes: int = sys.maxsize) -> None:
        self._count = count
        self._grown = 0
        self.max_bytes = max_bytes
        self.setting = "sessions.max_session_bytes"  # the name of the limit in messages

    def grow(self, size: int) -> None:
        """Report that the resources hold `size` bytes more than before.

        Raises ResourceExhaustedError if they hold more than the limit; the caller must then undo
        the growth.
        """
        if self.max_bytes == sys.maxsize:
            return
        self._grown += size
        if self._grown > min(_STEP, self.max_bytes // _SHARE):
            self.check()
            self._grown = 0

    def check(self, further: int = 0) -> None:
        """Raise ResourceExhaustedError if the limit leaves no room for `further` bytes."""
        if self.max_bytes == sys.maxsize:
            return
        held = self._count() + further
        if held > self.max_bytes:
            raise ResourceExhaustedError(
                f"The resources of the session would hold {held} bytes; "
                f"{self.setting} is {self.max_bytes}"
            )


# The limit of a resource that belongs to no manager, or to one without a limit.
NO_LIMIT = GrowthLimit(lambda: 0)
