"""What the clients of a soak saw: requests by kind, answers that were wrong, failures by code.

A request that is meant to fail (a poisoned body, an expired step) is right if it fails with the
expected code. A failure is *explained* if a fault of the soak happened while the request was under
way and may cause that code.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator

MAX_NOTES = 50  # texts of wrong answers and failures that are kept
FAULT_SECONDS = 0.1  # between the note of a fault and its effect


class WrongAnswer(Exception):  # noqa: N818 - an answer, not an error of the program
    """An answer differs from the known result."""


class Failed(Exception):  # noqa: N818 - as above
    """A request failed with a code that was not expected; `code` is NO_ANSWER without an answer."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault at an instant of `time.monotonic()`, and what it may cause: (kind, code)."""

    at: float
    causes: frozenset[tuple[str, str]]

    def explains(self, kind: str, code: str, since: float) -> bool:
        """Return whether it explains the failure of a request that began at `since`."""
        return since <= self.at + FAULT_SECONDS and (kind, code) in self.causes


@dataclasses.dataclass
class Counts:
    """What happened in a span of time."""

    requests: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    wrong: int = 0
    failed: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    explained: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def add(self, other: Counts) -> None:
        """Add the counts of another span."""
        self.requests += other.requests
        self.wrong += other.wrong
        self.failed += other.failed
        self.explained += other.explained


class Record:
    """Counts of one span of time after the other. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # guards everything below
        self._now = Counts()
        self._faults: collections.deque[Fault] = collections.deque(maxlen=100)
        self.notes: list[str] = []

    def count(self, kind: str, requests: int = 1) -> None:
        """Count requests of a kind."""
        with self._lock:
            self._now.requests[kind] += requests

    def fault(self, causes: frozenset[tuple[str, str]]) -> None:
        """Note that a fault happens now."""
        with self._lock:
            self._faults.append(Fault(self._clock(), causes))

    @contextlib.contextmanager
    def watched(self, kind: str) -> Iterator[None]:
        """Count what goes wrong inside the context, which does work of a kind."""
        since = self._clock()
        try:
            yield
        except WrongAnswer as error:
            with self._lock:
                self._now.wrong += 1
                self._note(f"wrong, {kind}: {error}")
        except Failed as error:
            self._failed(kind, error, since)
        except Exception as error:  # a fault of a client, too, must end the soak with a failure
            self._failed(kind, Failed("NO_ANSWER", f"{type(error).__name__}: {error}"), since)

    def take(self) -> Counts:
        """Return the counts since the last call."""
        with self._lock:
            taken, self._now = self._now, Counts()
            return taken

    def _failed(self, kind: str, error: Failed, since: float) -> None:
        with self._lock:
            if any(fault.explains(kind, error.code, since) for fault in self._faults):
                self._now.explained[error.code] += 1
                return
            self._now.failed[error.code] += 1
            self._note(f"failed, {kind}: {error}")

    def _note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text[:500])
