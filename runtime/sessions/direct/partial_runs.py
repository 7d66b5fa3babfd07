"""The partial runs of a session: their handles, and the expiry of abandoned runs.

A partial run is one step that several calls feed and fetch; each call is a part of the run.

Guarantees: thread-safe; a part that waits for its fetches blocks no thread, unless its caller
waits for the future. A handle becomes invalid when everything was fed and fetched, after an error
of the step, when a waiting part is cancelled, after IDLE_SECONDS without a part, and when the
session is closed.

TF: tensorflow/core/common_runtime/direct_session.cc (PRunState). TensorFlow has no expiry: it keeps
abandoned handles for ever.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import itertools
import threading
import time
from collections.abc import Mapping, Sequence

from runtime.executors.dataflow import DataflowExecutor
from runtime.executors.partial_run import PartialRun
from runtime.executors.step import Step
from runtime.foundation.deadline_timer import Timeout, deadline_timer
from runtime.foundation.errors import CancelledError, InvalidArgumentError, OpError
from runtime.framework.cancellation import RUN_CANCELLED, CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.held_bytes import value_bytes
from runtime.sessions.direct.prepared_step import argument
from runtime.sessions.runtime_session import Tensor

IDLE_SECONDS = 600.0  # a partial run ends if no part comes for this long


@dataclasses.dataclass(slots=True)
class _Entry:
    run: PartialRun
    feeds: Mapping[str, tuple[int, DataType]]  # by name: the place and the type
    parts: int = 0  # number of parts that wait for fetches; the run can't expire before it is 0
    deadline: float = 0.0  # time.monotonic() at which the run expires
    timeout: Timeout | None = None

    def argument(self, name: str, value: Tensor) -> Tensor:
        """Return a fed value as an array of its type, apart from an unknown name's."""
        known = self.feeds.get(name)
        return value if known is None else argument(value, known[1], known[0], name)


class PartialRuns:
    """The partial runs of one session, by handle."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()  # guards _entries and the fields of each entry
        self._entries: dict[str, _Entry] = {}
        self._numbers = itertools.count()

    @property
    def bytes_held(self) -> int:
        """The bytes of the runs, with what they were fed and have computed so far."""
        return value_bytes(*(entry.run for entry in list(self._entries.values())))

    def __len__(self) -> int:
        return len(self._entries)

    def set_up(
        self,
        executor: DataflowExecutor,
        step: Step,
        feeds: Mapping[str, DataType],
        fetches: Sequence[str],
        targets: Sequence[str],
    ) -> str:
        """Start a partial run; return a handle that contains the feeds, fetches and targets.

        `feeds` has the type of each.
        """
        spelled = f"{','.join(feeds)}->{','.join(fetches)}/{','.join(targets)}/1/;"
        handle = f"{spelled}{next(self._numbers)}"
        run = PartialRun(executor, step, list(feeds), fetches)
        entry = _Entry(run, {name: (at, feeds[name]) for at, name in enumerate(feeds)})
        run.begin()
        with self._lock:
            self._entries[handle] = entry
        self._restart_idle_time(handle, entry)
        return handle

    def start_part(
        self,
        handle: str,
        feeds: Mapping[str, Tensor],
        fetches: Sequence[str],
        cancellation: CancellationManager | None = None,
    ) -> concurrent.futures.Future[list[Tensor]]:
        """Start a part; return a future of the values of `fetches`, or of the error of the step.

        While the part waits for its fetches, `cancellation` can end the whole run. Raises
        InvalidArgumentError if the handle is unknown, its run has ended or a value has the wrong
        type, the error of `cancellation` if it is cancelled, and what `PartialRun.start_part`
        raises.

        TF: direct_session.cc (PRun, WaitForNotification: a part's deadline cancels the run)
        """
        with self._lock:
            entry = self._entries.get(handle) if isinstance(handle, str) else None
        if entry is None:
            raise InvalidArgumentError("Must run 'setup' before performing partial runs!")
        arguments = {name: entry.argument(name, value) for name, value in feeds.items()}
        future: concurrent.futures.Future[list[Tensor]] = concurrent.futures.Future()
        given = cancellation or CancellationManager()
        token = given.add_callback(lambda: self._cancel(handle, future, given.error[0]))
        given.check()

        def done(values: list[Tensor] | None, error: OpError | None) -> None:
            given.remove_callback(token)
            self._count_part(handle, entry, -1)
            if entry.run.is_complete:
                self._forget(handle)
            with contextlib.suppress(concurrent.futures.InvalidStateError):  # cancelled by a caller
                if error is not None:
                    future.set_exception(error)
                else:
                    future.set_result(values or [])

        self._count_part(handle, entry, 1)
        try:
            entry.run.start_part(arguments, fetches, done)
        except OpError:
            given.remove_callback(token)
            self._count_part(handle, entry, -1)
            raise
        return future

    def _count_part(self, handle: str, entry: _Entry, change: int) -> None:
        with self._lock:
            entry.parts += change
        self._restart_idle_time(handle, entry)

    def _restart_idle_time(self, handle: str, entry: _Entry) -> None:
        """Restart the time after which the run expires if no part comes."""
        with self._lock:
            if entry.timeout is not None:
                entry.timeout.cancel()
            if self._entries.get(handle) is not entry:  # the run has ended in the meantime
                return
            entry.deadline = time.monotonic() + self._idle_seconds
            entry.timeout = deadline_timer.call_at(entry.deadline, lambda: self._expire(handle))

    def _expire(self, handle: str) -> None:
        with self._lock:
            entry = self._entries.get(handle)
        if entry is None or time.monotonic() < entry.deadline:  # the timer is outdated
            return
        if entry.parts:  # a client is waiting
            self._restart_idle_time(handle, entry)
            return
        self._abandon(
            handle, CancelledError(f"The partial run was left alone for {self._idle_seconds} s")
        )

    def _cancel(
        self, handle: str, part: concurrent.futures.Future[list[Tensor]], error: OpError
    ) -> None:
        """End a run because one of its parts was cancelled with `error`."""
        # A deadline or an explicit cancellation takes precedence over the error of a waiting op.
        if error.message != RUN_CANCELLED:
            with contextlib.suppress(concurrent.futures.InvalidStateError):
                part.set_exception(error.copy())
        self._abandon(handle, error)

    def _abandon(self, handle: str, error: OpError) -> None:
        entry = self._forget(handle)
        if entry is not None:
            entry.run.abandon(error)

    def _forget(self, handle: str) -> _Entry | None:
        with self._lock:
            entry = self._entries.pop(handle, None)
        if entry is not None and entry.timeout is not None:
            entry.timeout.cancel()
        return entry

    def close(self, error: CancelledError) -> None:
        """End every partial run with `error`."""
        for handle in list(self._entries):
            self._abandon(handle, error)
