"""Tally: the requests of a mixed load, by front and code."""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Iterator, Mapping

from bench.soak.record import Failed, WrongAnswer

OK, WRONG = "OK", "WRONG_ANSWER"
# A server that drains has refused the request, and it was sent to another one, as balancers do.
ELSEWHERE = "refused, sent elsewhere"
MAX_NOTES = 20  # texts of failures that are kept


class Tally:
    """Counts requests. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards everything below
        self._counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.notes: list[str] = []

    def add(self, front: str, code: str = OK, count: int = 1) -> None:
        """Count requests of a front that ended with a code."""
        with self._lock:
            self._counts[front, code] += count

    @contextlib.contextmanager
    def watched(self, front: str) -> Iterator[None]:
        """Count a request that fails inside the context."""
        try:
            yield
        except WrongAnswer as error:
            self.fail(front, WRONG, str(error))
        except Failed as error:
            self.fail(front, error.code, str(error))
        except Exception as error:  # a fault of a client, too, must end the run with a failure
            self.fail(front, "NO_ANSWER", f"{type(error).__name__}: {error}")

    def fail(self, front: str, code: str, text: str) -> None:
        """Count a request that failed, and keep the first of the texts."""
        with self._lock:
            self._counts[front, code] += 1
            if len(self.notes) < MAX_NOTES:
                self.notes.append(f"{front}: {code}: {text}"[:500])

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the counts by front and code."""
        found: dict[str, dict[str, int]] = {}
        with self._lock:
            for (front, code), count in sorted(self._counts.items()):
                found.setdefault(front, {})[code] = count
        return found


def failed(codes: Mapping[str, int]) -> int:
    """Return how many of the requests of a front failed."""
    return sum(count for code, count in codes.items() if code not in (OK, ELSEWHERE))
