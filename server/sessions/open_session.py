"""One open session: the runtime's session, its lease, its running steps and its properties."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from runtime.api import (
    DataType,
    DirectSession,
    ThreadPool,
    global_thread_pools,
)
from runtime.errors import CancelledError, Code, ResourceExhaustedError
from server.codec.session.short_run import ShortRun, StepNames, make_short_run
from server.sessions.clock import Clock, rfc3339
from server.sessions.session_errors import SessionGoneError
from server.steps.step_request import StepRequest

CHECK_SECONDS = 0.1  # the least time between two counts of the bytes that a session holds
CHECK_SHARE = 0.02  # the most part of the time of the event loop that counting one session takes
MAX_KNOWN_TENSORS = 10_000
MAX_LAST_STEPS = 50  # of one session, which are kept for whoever looks at it
_SHOWN_NAME = 120  # characters of a name in them, because a client may send any names
MAX_SHORT_RUNS = 32  # of one session; a client may spell one step in many ways
Shape = tuple[int, ...] | None  # None if the rank is unknown; −1 for an unknown dimension
TensorInfo = Callable[[str], tuple[DataType, Shape]]


class Lease:
    """The idle time after which a session is closed.

    `deadline` is the instant at which the lease runs out. It is infinite while something holds the
    lease, for example a running step.
    """

    __slots__ = ("_holders", "deadline", "seconds")

    def __init__(self, seconds: float, now: float) -> None:
        self.seconds = seconds
        self.deadline = now + seconds
        self._holders = 0

    def renew(self, now: float, seconds: float | None = None) -> None:
        """Let the idle time start now, with another length if `seconds` is given."""
        if seconds is not None:
            self.seconds = seconds
        if not self._holders:
            self.deadline = now + self.seconds

    def hold(self) -> None:
        """Keep the lease from running out until `release`."""
        self._holders += 1
        self.deadline = math.inf

    def release(self, now: float) -> None:
        """Undo one `hold`; the idle time starts when the last one is undone."""
        self._holders -= 1
        if not self._holders:
            self.deadline = now + self.seconds

    def expires_at(self, now: float) -> float:
        """Return the instant at which the lease runs out.

        If the lease is held, the result is the instant that a release now would give.
        """
        return now + self.seconds if self._holders else self.deadline

    def has_expired(self, now: float) -> bool:
        """Return whether the lease has run out."""
        return now >= self.deadline


class FirstNames(NamedTuple):
    """The first feed, fetch and target of a step, cut if long, and how many there are of each."""

    feed: str
    feeds: int
    fetch: str
    fetches: int
    target: str
    targets: int


class EndedStep(NamedTuple):
    """A step that has ended at wall time `at`; `pool` is empty if it ran in the event loop."""

    at: float
    request_id: str
    names: StepNames | FirstNames
    pool: str
    wait_seconds: float
    run_seconds: float
    code: Code


@dataclasses.dataclass(slots=True, weakref_slot=True)
class OwnerSteps:
    """The steps of all sessions of one owner that wait or run; at most `most`."""

    most: int
    count: int = 0


@dataclasses.dataclass(slots=True)
class OpenSession:
    """A session in the registry.

    Only `session` and `tensor_info` may be used on threads other than the event loop's.
    """

    id: str
    session: DirectSession
    name: str
    model: dict[str, Any] | None
    shared_weights: bool
    lease: Lease
    clock: Clock
    owner: str = ""  # the owner of the caller that opened it
    default_timeout_ms: int = 0  # the timeout of requests that set none; 0 means no timeout
    runs_in_caller: bool = False  # set by `session_config.runs_in_caller`
    max_step_seconds: float = 0.0  # the longest that a step may take; 0 means no limit
    max_running_steps: int = sys.maxsize  # a step may begin if fewer wait or run
    owner_steps: OwnerSteps | None = None  # None if the owner has no limit
    max_bytes: int = sys.maxsize  # a step may begin if the session holds at most this
    steps: int = 0
    last_used_at: float = 0  # wall time of the last use
    gone: str = ""  # the message of SessionGoneError once the session is not open any more
    _next_check: float = 0.0  # instant of the next count of bytes
    _bytes: int = 0
    _in_flight: int = 0
    # Held while an extend compares the graph version and changes the graph.
    extend_lock: asyncio.Lock = dataclasses.field(default_factory=asyncio.Lock)
    _running: dict[str, list[StepRequest]] = dataclasses.field(default_factory=dict)
    _short_runs: dict[StepNames, ShortRun] = dataclasses.field(default_factory=dict)
    # The fields of EndedStep, as plain tuples, which take less time to make.
    _last_steps: collections.deque[tuple[Any, ...]] = dataclasses.field(
        default_factory=lambda: collections.deque(maxlen=MAX_LAST_STEPS)
    )
    # Returns the element type and static shape of a tensor by name; raises the direct session's
    # error if the name is unknown. It may be called from any thread.
    tensor_info: TensorInfo = dataclasses.field(init=False)
    # The results of `tensor_info` so far.
    known_tensors: Mapping[str, tuple[DataType, Shape]] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.known_tensors = known = _KnownTensors(self.session)
        self.tensor_info = known.__getitem__

    @property
    def is_running(self) -> bool:
        """Whether a step is in flight."""
        return bool(self._running)

    @property
    def queue_owner(self) -> str:
        """Whoever takes turns with others in the queue of a thread pool."""
        return self.id

    @property
    def graph_version(self) -> int:
        """The number of times that the graph has been extended."""
        return self.session.graph_version

    def thread_pools(self, shown_id: str | None = None) -> list[tuple[str, ThreadPool]]:
        """Return (name, pool) pairs by index; a pool of this session is named `<id>/Compute0`.

        `shown_id` takes the place of the id, for those who may not see it.
        """
        session_id = shown_id or self.id
        return [
            (pool.name if self._is_global(pool) else f"{session_id}/Compute{index}", pool)
            for index, pool in enumerate(self.session.thread_pools)
        ]

    def own_thread_pools(self, shown_id: str | None = None) -> list[tuple[str, ThreadPool]]:
        """Return the entries of `thread_pools` whose threads end with the session."""
        if self.runs_in_caller:  # the pool is the process's and is not used
            return []
        return [
            (name, pool) for name, pool in self.thread_pools(shown_id) if not self._is_global(pool)
        ]

    @staticmethod
    def _is_global(pool: ThreadPool) -> bool:
        return global_thread_pools.find(pool.name) is pool

    @contextlib.contextmanager
    def using(self) -> Iterator[None]:
        """Hold the lease while work other than a step uses the session."""
        self.lease.hold()
        try:
            yield
        finally:
            self.lease.release(self.clock.monotonic())
            self.last_used_at = self.clock.wall()

    @property
    def running_steps(self) -> list[StepRequest]:
        """The steps that wait or run, in the order of their request ids' beginning."""
        return [request for requests in self._running.values() for request in requests]

    @property
    def last_steps(self) -> list[EndedStep]:
        """The last MAX_LAST_STEPS steps that have ended, the newest first."""
        steps = []
        for at, request_id, names, *rest in reversed(self._last_steps):
            read = names if isinstance(names, StepNames) else FirstNames._make(names)
            steps.append(EndedStep(at, request_id, read, *rest))
        return steps

    def begin_step(self, request: StepRequest) -> None:
        """Count a step, hold the lease, and register the step under its request id.

        Raises SessionGoneError if the session was closed or expired while the request was read, and
        ResourceExhaustedError if `max_running_steps` steps, or the most of the owner, wait or run,
        or if the session holds more than `max_bytes`.
        """
        self.check_may_run()
        self.steps += 1
        self._in_flight += 1
        if self.owner_steps is not None:
            self.owner_steps.count += 1
        self._running.setdefault(request.request_id, []).append(request)
        self.lease.hold()

    def check_open(self) -> None:
        """Raise SessionGoneError when the session was closed or its lease has run out."""
        if self.gone:
            raise SessionGoneError(self.gone)
        if self.clock.monotonic() >= self.lease.deadline:
            raise SessionGoneError(self.expiry_message)

    @property
    def expiry_message(self) -> str:
        """The message for the id of a session whose lease has run out."""
        instant = self.lease.expires_at(self.clock.monotonic())
        return f"Session lease expired at {rfc3339(self.clock.wall_at(instant))}"

    def end_step(self, request: StepRequest) -> None:
        """End the step that `begin_step` registered."""
        self._in_flight -= 1
        if self.owner_steps is not None:
            self.owner_steps.count -= 1
        running = self._running[request.request_id]
        running.remove(request)
        if not running:
            del self._running[request.request_id]
        self.lease.release(self.clock.monotonic())
        self.last_used_at = at = self.clock.wall()
        feeds, fetches, targets = request.feeds, request.fetches, request.targets
        names = (
            next(iter(feeds))[:_SHOWN_NAME] if feeds else "", len(feeds),
            fetches[0][:_SHOWN_NAME] if fetches else "", len(fetches),
            targets[0][:_SHOWN_NAME] if targets else "", len(targets),
        )  # fmt: skip
        self._last_steps.append((
            at, request.request_id, names, request.pool,
            request.wait_seconds, request.run_seconds, request.code,
        ))  # fmt: skip

    def short_run(self, names: StepNames) -> ShortRun | None:
        """Return the short run of a step of this session; see `make_short_run`."""
        found = self._short_runs.get(names)
        if found is None:
            found = make_short_run(names, self)
            if found is not None:
                if len(self._short_runs) >= MAX_SHORT_RUNS:
                    self._short_runs.clear()
                self._short_runs[names] = found
        return found

    def check_may_run(self) -> None:
        """Raise what `begin_step` raises."""
        self.check_open()
        if self._in_flight >= self.max_running_steps:
            raise ResourceExhaustedError(
                f"{self._in_flight} steps of the session wait or run, which is the most "
                "(sessions.max_running_steps)"
            )
        shared = self.owner_steps
        if shared is not None and shared.count >= shared.most:
            raise ResourceExhaustedError(
                f"{shared.count} steps of the owner's sessions wait or run, which is the "
                "most (sessions.max_owner_steps)"
            )
        self._check_bytes(self.clock.monotonic())

    def note_short_run(self, names: StepNames, seconds: float, code: Code = Code.OK) -> None:
        """Count a step that began and ended at once, and renew the lease."""
        self.steps += 1
        self.lease.renew(self.clock.monotonic())
        self.last_used_at = at = self.clock.wall()
        self._last_steps.append((at, "", names, "", 0.0, seconds, code))

    def _check_bytes(self, now: float) -> None:
        """Raise ResourceExhaustedError if the session holds more than `max_bytes`.

        Counting many variables takes time (about 1 µs each), so the bytes are counted at most every
        CHECK_SECONDS, and less often if a count takes long. A step may exceed the limit by the
        tensors that it assigns to variables.
        """
        if now >= self._next_check:
            began = time.perf_counter()
            self._bytes = self.session.bytes_held
            pause = (time.perf_counter() - began) / CHECK_SHARE
            if self._bytes <= self.max_bytes:
                pause = max(pause, CHECK_SECONDS)
            elif pause < CHECK_SECONDS / 10:
                pause = 0.0  # count again before the next step, because the session may have shrunk
            self._next_check = now + pause
        if self._bytes > self.max_bytes:
            raise ResourceExhaustedError(
                f"The session holds {self._bytes} bytes; "
                f"sessions.max_session_bytes is {self.max_bytes}"
            )

    def cancel(self, request_id: str) -> bool:
        """Cancel the running steps of a request; return False if there are none."""
        running = self._running.get(request_id)
        if not running:
            return False
        _cancel(running, "Step was cancelled by request.")
        return True

    def cancel_all(self, message: str) -> None:
        """Cancel every running step with a CancelledError of this message."""
        for running in list(self._running.values()):
            _cancel(running, message)


def _cancel(requests: list[StepRequest], message: str) -> None:
    for request in list(requests):
        if request.cancellation is not None:  # None only if the step ends at once
            request.cancellation.cancel(CancelledError(message))


class _KnownTensors(dict[str, tuple[DataType, Shape]]):
    """The tensors looked up so far, which stay valid because an extend only adds nodes.

    It keeps at most MAX_KNOWN_TENSORS names: a client may spell one tensor in many ways.
    """

    def __init__(self, session: DirectSession) -> None:
        super().__init__()
        self._session = session

    def __missing__(self, name: str) -> tuple[DataType, Shape]:
        known = self._session.tensor_info(name)
        if len(self) >= MAX_KNOWN_TENSORS:
            self.clear()
        self[name] = known
        return known
