"""Bounded queues, shared by the steps of a session; operations wait without blocking a thread.

An attempt is an operation that has not finished yet. Each queue has two lists of attempts: one for
enqueues and closes, one for dequeues. A thread that changes the queue runs attempts from the heads
of both lists until none can continue. An attempt that has to wait stays in the list; the thread
whose change lets the attempt finish completes the attempt's `Deferred`.

Guarantees: thread-safe (each queue has one lock, which is not held while Deferreds complete);
attempts of one list complete in order; a cancelled attempt is removed from the list, and a
cancelled dequeue puts back the elements that it had taken.

TF: tensorflow/core/kernels/queue_base.cc, fifo_queue.cc
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from runtime.foundation.errors import CancelledError, OpError, OutOfRangeError, as_op_error
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.growth_limit import GrowthLimit
from runtime.framework.held_bytes import HeldBytes
from runtime.framework.op_kernel import Deferred
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.resource_manager import Resource
from runtime.framework.tensor_value import TensorValue

Element = tuple[TensorValue, ...]  # one tensor for each component
Finish = Callable[[list[Element]], Element]  # converts the dequeued elements to the op's outputs


class Attempt:
    """An operation on a queue, and the Deferred that completes when the operation has ended."""

    __slots__ = ("deferred", "error", "is_done")
    verb = ""

    def __init__(self) -> None:
        self.deferred = Deferred()
        self.is_done = False  # the queue's lock guards it
        self.error: OpError | None = None

    def complete(self) -> None:
        """Complete the Deferred with the outputs or the error; the caller must not hold the lock.

        An exception that `result` raises becomes the error of this attempt, so that the step whose
        change completes the attempt does not fail.
        """
        error, value = self.error, None
        if error is None:
            try:
                value = self.result()
            except Exception as caught:
                error = as_op_error(caught)
        if error is not None:
            self.deferred.set_error(error)
        else:
            self.deferred.set_value(value)

    def result(self) -> Element | None:
        """Return the outputs of the op."""
        return None


A = TypeVar("A", bound=Attempt)


class EnqueueAttempt(Attempt):
    """An enqueue, and the elements that it has not yet added to the queue."""

    __slots__ = ("pending",)
    verb = "Enqueue"

    def __init__(self, elements: Sequence[Element]) -> None:
        super().__init__()
        self.pending = collections.deque(elements)


class CloseAttempt(Attempt):
    """A close, which takes effect after the earlier enqueues have completed."""

    __slots__ = ()
    verb = "Close"


class DequeueAttempt(Attempt):
    """A dequeue of `requested` elements, and the elements that it has taken so far."""

    __slots__ = ("finish", "is_partial_fine", "kind", "requested", "taken")
    verb = "Dequeue"

    def __init__(self, requested: int, is_partial_fine: bool, finish: Finish, kind: str) -> None:
        super().__init__()
        self.kind = kind  # the name of the kind of queue in error messages
        self.requested = requested
        self.is_partial_fine = is_partial_fine
        self.finish = finish
        self.taken: list[Element] = []

    def result(self) -> Element:
        """Return the outputs of the op for the elements that were taken."""
        return self.finish(self.taken)


class Queue(Resource):
    """A first-in-first-out queue; subclasses override how elements are stored and ordered.

    `shapes` is empty if the values of a component may differ in shape. If `capacity` is −1, the
    number of elements is not limited.
    """

    type_name = "N10tensorflow14QueueInterfaceE"
    kind = "FIFOQueue"
    # The kind that messages of operations on one element contain. TensorFlow's PaddingFIFOQueue
    # inherits these operations and messages from FIFOQueue.
    kind_of_one = kind

    def __init__(
        self,
        name: str,
        component_types: tuple[DataType, ...],
        shapes: tuple[PartialShape, ...],
        capacity: int,
    ) -> None:
        self.name = name
        self.component_types = component_types
        self.shapes = shapes
        self.capacity = capacity
        self._lock = threading.Lock()  # guards everything below, and `is_done` of attempts
        self._enqueues: collections.deque[EnqueueAttempt | CloseAttempt] = collections.deque()
        self._dequeues: collections.deque[DequeueAttempt] = collections.deque()
        self._is_closed = False
        self._elements: collections.deque[Element] = collections.deque()
        # An element counts from its enqueue until its dequeue ends, so also while either waits.
        self._held_bytes = HeldBytes()

    # The methods that store elements; the caller must hold the lock.

    def _size(self) -> int:
        return len(self._elements)

    def _put(self, element: Element) -> None:
        self._elements.append(element)

    def _take(self) -> Element:
        return self._elements.popleft()

    def _put_back(self, elements: list[Element]) -> None:
        self._elements.extendleft(reversed(elements))

    def _available(self) -> int:
        """Return the number of elements that may be taken now."""
        return self._size()

    # The methods that kernels call.

    @property
    def size(self) -> int:
        """The number of elements in the queue."""
        with self._lock:
            return self._size()

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the elements, also of those whose enqueue or dequeue waits."""
        return self._held_bytes.bytes, ()

    def limit_growth(self, limit: GrowthLimit) -> None:
        """Report the elements of later enqueues to `limit`."""
        self._held_bytes.limit = limit

    @property
    def is_closed(self) -> bool:
        """Whether the queue is closed; false while a close waits for earlier enqueues."""
        with self._lock:
            return self._is_closed

    def enqueue(
        self, elements: Sequence[Element], cancellation: CancellationManager
    ) -> Deferred | None:
        """Add elements in order; return None, or a Deferred if some have to wait for room.

        Raises CancelledError if the queue is closed, ResourceExhaustedError if the resources of
        the session would hold too many bytes.
        """
        if not elements:
            return None
        with self._lock:
            self._count(elements)
        attempt = EnqueueAttempt(elements)
        return self._start(attempt, self._enqueues, cancellation)

    def dequeue(
        self,
        count: int,
        finish: Finish,
        cancellation: CancellationManager,
        is_partial_fine: bool = False,
        kind: str = "",
    ) -> Deferred | Element:
        """Take the next `count` elements; return `finish(elements)`.

        If they can't all be taken yet, return a Deferred of this result.

        Raises OutOfRangeError if the queue is closed and has fewer elements; if `is_partial_fine`,
        only if the queue has no elements.
        """
        if count == 0:
            return finish([])
        attempt = DequeueAttempt(count, is_partial_fine, finish, kind or self.kind_of_one)
        waiting = self._start(attempt, self._dequeues, cancellation)
        return attempt.result() if waiting is None else waiting

    def close(
        self, cancel_pending_enqueues: bool, cancellation: CancellationManager
    ) -> Deferred | None:
        """Close the queue, so that further enqueues fail.

        If `cancel_pending_enqueues`, cancel the pending enqueues. Otherwise the queue closes after
        they have completed; return a Deferred if that requires waiting, and raise CancelledError if
        the queue is already closed.
        """
        if not cancel_pending_enqueues:
            return self._start(CloseAttempt(), self._enqueues, cancellation)
        with self._lock:
            self._is_closed = True
            dropped: list[Attempt] = [attempt for attempt in self._enqueues if not attempt.is_done]
            self._enqueues.clear()
            for attempt in dropped:
                attempt.is_done = True
                attempt.error = CancelledError("Enqueue operation was cancelled")
                self._drop_pending(attempt)
            done = dropped + self._advance()
        _complete(done)
        return None

    # The methods that count elements; the caller must hold the lock.

    def _count(self, elements: Iterable[Element]) -> None:
        self._held_bytes.add([value for element in elements for value in element])

    def _uncount(self, elements: Iterable[Element]) -> None:
        self._held_bytes.drop([value for element in elements for value in element])

    def _drop_pending(self, attempt: Attempt) -> None:
        """Drop the elements that an enqueue which has failed did not add."""
        if isinstance(attempt, EnqueueAttempt):
            self._uncount(attempt.pending)
            attempt.pending.clear()

    # The methods that run attempts.

    def _start(
        self,
        attempt: A,
        line: collections.deque[A],
        cancellation: CancellationManager,
    ) -> Deferred | None:
        """Run `attempt`; return None if done, or a Deferred of the result if it has to wait."""
        with self._lock:
            line.append(attempt)
            done = self._advance()
        _complete([each for each in done if each is not attempt])
        if attempt in done:
            if attempt.error is not None:
                raise attempt.error
            return None
        return attempt.deferred.until_cancelled(cancellation, lambda: self._cancel(attempt))

    def _cancel(self, attempt: Attempt) -> None:
        with self._lock:
            if attempt.is_done:
                return
            attempt.is_done = True
            attempt.error = CancelledError(f"{attempt.verb} operation was cancelled")
            if isinstance(attempt, DequeueAttempt):
                self._put_back(attempt.taken)
            self._drop_pending(attempt)
            done = [attempt, *self._advance()]
        _complete(done)

    def _advance(self) -> list[Attempt]:
        """Run attempts until none can continue; return the attempts that ended.

        The caller must hold the lock and must call `complete` on them after releasing it.
        """
        done: list[Attempt] = []
        is_moving = True
        while is_moving:
            moved_in = self._run_attempts(self._enqueues, self._try_enqueue, done)
            moved_out = self._run_attempts(self._dequeues, self._try_dequeue, done)
            is_moving = moved_in or moved_out
        return done

    def _run_attempts(
        self,
        line: collections.deque[A],
        run: Callable[[A], bool],
        done: list[Attempt],
    ) -> bool:
        """Run attempts from the head of `line`; append the attempts that end to `done`.

        Return whether the queue has changed.
        """
        has_moved = False
        while line:
            attempt = line[0]
            if attempt.is_done:  # it was cancelled
                line.popleft()
                continue
            before = self._size()
            finished = run(attempt)
            has_moved = has_moved or finished or self._size() != before
            if not finished:
                break
            attempt.is_done = True
            line.popleft()
            done.append(attempt)
        return has_moved

    def _try_enqueue(self, attempt: EnqueueAttempt | CloseAttempt) -> bool:
        if isinstance(attempt, CloseAttempt):
            if self._is_closed:
                attempt.error = CancelledError(f"Queue '{self.name}' is already closed.")
            self._is_closed = True
            return True
        if self._is_closed:
            attempt.error = CancelledError(f"{self.kind_of_one} '{self.name}' is closed.")
            self._drop_pending(attempt)
            return True
        pending = attempt.pending
        while pending and (self.capacity < 0 or self._size() < self.capacity):
            self._put(pending.popleft())
        return not pending

    def _try_dequeue(self, attempt: DequeueAttempt) -> bool:
        missing = attempt.requested - len(attempt.taken)
        if self._is_closed and self._size() < missing:
            self._put_back(attempt.taken)
            attempt.taken = []
            if attempt.is_partial_fine and self._size():
                attempt.requested = missing = self._size()
            elif attempt.is_partial_fine and self._enqueues:
                return False  # pending enqueues may still add elements
            else:
                attempt.error = OutOfRangeError(
                    f"{attempt.kind} '{self.name}' is closed and has insufficient elements "
                    f"(requested {missing}, current size {self._size()})"
                )
                return True
        for _ in range(min(missing, self._available())):
            attempt.taken.append(self._take())
        if len(attempt.taken) < attempt.requested:
            return False
        self._uncount(attempt.taken)
        return True


def _complete(attempts: Sequence[Attempt]) -> None:
    for attempt in attempts:
        attempt.complete()
