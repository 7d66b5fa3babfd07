"""Barriers: elements come in parts, by key, and go out when all their parts are there.

Guarantees: thread-safe; elements go out in the order of the inserts that brought their first parts.
An insert that meets a key that has its part stops there: as in TensorFlow, what came before stays,
but for elements that it completed, which are lost.

TF: tensorflow/core/kernels/barrier_ops.cc (Barrier)
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Deferred
from runtime.framework.partial_shapes import PartialShape, is_compatible
from runtime.framework.resource_manager import Resource
from runtime.framework.resources.queue_kinds import PriorityQueue
from runtime.framework.resources.queues import Element, Finish
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_text import readable
from runtime.framework.tensor_value import TensorValue

_FIRST_INDEX = int(np.iinfo(np.int64).min)
_NOT_THERE = object()


class Barrier(Resource):
    """Incomplete elements by key, and a queue of (index, key, components…) that are complete."""

    type_name = "N10tensorflow7barrier7BarrierE"

    def __init__(
        self,
        name: str,
        component_types: tuple[DataType, ...],
        shapes: tuple[PartialShape, ...],
    ) -> None:
        self.name = name
        self.component_types = component_types
        self.shapes = shapes
        self.ready = PriorityQueue(
            f"{name}_queue",
            (DataType.INT64, DataType.STRING, *component_types),
            ((), (), *shapes),
            capacity=-1,
        )
        self._lock = threading.Lock()  # guards what follows; not held while the queue changes
        self._incomplete: dict[bytes, list[TensorValue]] = {}
        self._next_index = _FIRST_INDEX
        self._moving = 0  # complete elements on their way to the queue
        self._is_closed = False
        self._is_cancelled = False  # closed without waiting for what is incomplete
        self._is_over = False  # the queue is closed too

    @property
    def incomplete_size(self) -> int:
        """How many elements lack a component."""
        with self._lock:
            return len(self._incomplete)

    def insert(
        self,
        keys: Sequence[bytes],
        component: int,
        values: Sequence[TensorValue],
        cancellation: CancellationManager,
    ) -> None:
        """Give one component of the elements `keys`.

        Raises InvalidArgumentError when an element has it, or is complete now and one of its
        parts has another shape than the barrier's (it is dropped); CancelledError when the
        barrier is closed and a key is new.
        """
        with self._lock:
            self._check_open(keys)
            complete = self._insert(keys, component, values)
            self._moving += len(complete)
        problems = [self._misfit(parts) for parts in complete]
        fitting = [parts for parts, problem in zip(complete, problems, strict=True) if not problem]
        self.ready.enqueue(fitting, cancellation)
        with self._lock:
            self._moving -= len(complete)
            is_over = self._is_over_now()
        if is_over:
            self.ready.close(False, cancellation)
        if any(problems):
            raise InvalidArgumentError(next(filter(None, problems)))

    def _misfit(self, parts: Element) -> str:
        """What is wrong with the shapes of a complete element; empty when nothing is."""
        for place, (shape, part) in enumerate(zip(self.shapes, parts[2:], strict=True), 2):
            actual = np.asarray(part).shape
            if not is_compatible(shape, actual):
                return (
                    f"Shape mismatch in tuple component {place}. "
                    f"Expected {shape_text(shape)}, got {shape_text(actual)}"
                )
        return ""

    def _is_over_now(self) -> bool:
        """Whether nothing more will come, as this caller, and no other, has to tell the queue."""
        was_over = self._is_over
        self._is_over = self._is_closed and not self._incomplete and not self._moving
        return self._is_over and not was_over

    def _check_open(self, keys: Sequence[bytes]) -> None:
        left = len(self._incomplete)
        if self._is_closed and (self._is_cancelled or (keys and not left)):
            raise CancelledError(
                f"Barrier {self.name} is closed.  Pending enqueues cancelled: "
                f"{self._is_cancelled:d}.  Number of new insertions: {len(keys)}.  "
                f"Number of incomplete keys: {left}."
            )

    def _check_open_for(self, key: bytes, index: int) -> None:
        if self._is_closed:
            raise CancelledError(
                f"Barrier {self.name} is closed, but attempted to insert a brand new key: "
                f"{readable(key)}.  Pending enqueues cancelled: "
                f"{self._is_cancelled:d}.  Insertion index: {index}.  "
                f"Number of incomplete keys: {len(self._incomplete)}."
            )

    def _insert(
        self, keys: Sequence[bytes], component: int, values: Sequence[TensorValue]
    ) -> list[Element]:
        complete: list[Element] = []
        has_new = False
        for index, (key, value) in enumerate(zip(keys, values, strict=True)):
            parts = self._incomplete.get(key)
            if parts is None:
                self._check_open_for(key, index)
                has_new = True
                parts = [np.int64(self._next_index), np.array(key, object)]
                parts += [_NOT_THERE] * len(self.component_types)
                self._incomplete[key] = parts
            if parts[2 + component] is not _NOT_THERE:
                raise InvalidArgumentError(
                    f"Key {readable(key)} already has a value for component {component} in "
                    f"barrier {self.name}"
                )
            parts[2 + component] = value
            if not any(part is _NOT_THERE for part in parts):
                complete.append(tuple(parts))
                del self._incomplete[key]
        self._next_index += has_new
        return complete

    def take(
        self,
        count: int,
        allow_small_batch: bool,
        finish: Finish,
        cancellation: CancellationManager,
    ) -> Deferred | Element:
        """`finish` of the next `count` elements, or a Deferred of it.

        OutOfRangeError when the barrier is closed and that many will never be complete; with
        `allow_small_batch` only when none is. InvalidArgumentError for a negative count.
        """
        with self._lock:
            if self._is_closed:
                available = self.ready.size + self._moving
                if allow_small_batch:
                    count = min(count, available)
                else:
                    available += len(self._incomplete)
                if available < max(count, 1):
                    raise OutOfRangeError(
                        f"Barrier '{self.name}' is closed and has insufficient elements "
                        f"(requested {count}, total size {available})"
                    )
        if count < 0:
            raise InvalidArgumentError(f"num_elements must not be negative, got {count}")
        return self.ready.dequeue(count, finish, cancellation, allow_small_batch)

    def close(self, cancel_pending_enqueues: bool, cancellation: CancellationManager) -> None:
        """Take no new keys; or drop the incomplete elements too.

        CancelledError when it is closed already, unless this call goes further.
        """
        with self._lock:
            if self._is_closed and (self._is_cancelled or not cancel_pending_enqueues):
                raise CancelledError(f"Barrier '{self.name}' is already closed.")
            self._is_closed, self._is_cancelled = True, cancel_pending_enqueues
            if cancel_pending_enqueues:
                self._incomplete.clear()
            is_over = self._is_over_now()
        if is_over:
            self.ready.close(cancel_pending_enqueues, cancellation)
