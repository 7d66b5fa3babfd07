"""Barriers: components of elements are inserted by key; elements with all components can be taken.

Guarantees: thread-safe; elements are taken in the order of the inserts of their first components.
An insert fails at the first key that already has the component. As in TensorFlow, the components
that this insert added before that key are kept, but the elements that they completed are lost.

TF: tensorflow/core/kernels/barrier_ops.cc (Barrier)
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import numpy as np

from runtime.foundation.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.growth_limit import GrowthLimit
from runtime.framework.held_bytes import HeldBytes
from runtime.framework.op_kernel import Deferred
from runtime.framework.partial_shapes import PartialShape, is_compatible
from runtime.framework.resource_manager import Resource
from runtime.framework.resources.queue_kinds import PriorityQueue
from runtime.framework.resources.queues import Element, Finish
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_text import readable
from runtime.framework.tensor_value import TensorValue

_FIRST_INDEX = int(np.iinfo(np.int64).min)
_MISSING = object()  # stands for a component that has not been inserted yet


class Barrier(Resource):
    """Incomplete elements by key, and a queue of complete elements (index, key, components…)."""

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
        self._lock = threading.Lock()  # guards the fields below; not held while `ready` changes
        self._incomplete: dict[bytes, list[TensorValue]] = {}
        self._held_bytes = HeldBytes()  # of the keys and components in `_incomplete`
        self._next_index = _FIRST_INDEX
        self._enqueuing = 0  # number of complete elements that have not been put into `ready` yet
        self._is_closed = False
        self._is_cancelled = False  # whether `close` dropped the incomplete elements
        self._is_drained = False  # whether the barrier is closed and `ready` has every element

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of all elements, complete or not."""
        return self._held_bytes.bytes + self.ready.held()[0], ()

    def limit_growth(self, limit: GrowthLimit) -> None:
        """Report the components of later inserts to `limit`."""
        self._held_bytes.limit = limit
        self.ready.limit_growth(limit)

    @property
    def incomplete_size(self) -> int:
        """The number of elements that lack a component."""
        with self._lock:
            return len(self._incomplete)

    def insert(
        self,
        keys: Sequence[bytes],
        component: int,
        values: Sequence[TensorValue],
        cancellation: CancellationManager,
    ) -> None:
        """Insert `values[i]` as component number `component` of the element with key `keys[i]`.

        Raises InvalidArgumentError if an element already has the component, or if an element is
        complete now and one of its components does not have the barrier's shape (that element is
        dropped). Raises CancelledError if the barrier is closed and a key is new, and
        ResourceExhaustedError if the resources of the session would hold too many bytes.
        """
        with self._lock:
            self._check_open(keys)
            complete = self._insert(keys, component, values)
            self._enqueuing += len(complete)
        problems = [self._shape_error(parts) for parts in complete]
        fitting = [parts for parts, problem in zip(complete, problems, strict=True) if not problem]
        self.ready.enqueue(fitting, cancellation)
        with self._lock:
            self._enqueuing -= len(complete)
            must_close_queue = self._update_is_drained()
        if must_close_queue:
            self.ready.close(False, cancellation)
        if any(problems):
            raise InvalidArgumentError(next(filter(None, problems)))

    def _shape_error(self, parts: Element) -> str:
        """Return the error text if a component of a complete element has a wrong shape, else ""."""
        for place, (shape, part) in enumerate(zip(self.shapes, parts[2:], strict=True), 2):
            actual = np.asarray(part).shape
            if not is_compatible(shape, actual):
                return (
                    f"Shape mismatch in tuple component {place}. "
                    f"Expected {shape_text(shape)}, got {shape_text(actual)}"
                )
        return ""

    def _update_is_drained(self) -> bool:
        """Update `_is_drained`; return whether the caller must close the queue `ready`.

        Only one call returns true. The caller must hold the lock.
        """
        was_drained = self._is_drained
        self._is_drained = self._is_closed and not self._incomplete and not self._enqueuing
        return self._is_drained and not was_drained

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
                parts = [np.int64(self._next_index), np.array(key, object)]
                self._held_bytes.add(parts)
                has_new = True
                parts += [_MISSING] * len(self.component_types)
                self._incomplete[key] = parts
            if parts[2 + component] is not _MISSING:
                raise InvalidArgumentError(
                    f"Key {readable(key)} already has a value for component {component} in "
                    f"barrier {self.name}"
                )
            self._held_bytes.add((value,))
            parts[2 + component] = value
            if not any(part is _MISSING for part in parts):
                complete.append(tuple(parts))
                del self._incomplete[key]
                self._held_bytes.drop(parts)
        self._next_index += has_new
        return complete

    def take(
        self,
        count: int,
        allow_small_batch: bool,
        finish: Finish,
        cancellation: CancellationManager,
    ) -> Deferred | Element:
        """Take the next `count` complete elements; return `finish(elements)`.

        If they can't all be taken yet, return a Deferred of this result.

        Raises OutOfRangeError if the barrier is closed and can't get `count` complete elements any
        more; if `allow_small_batch`, only if there is no complete element. Raises
        InvalidArgumentError if `count` is negative.
        """
        with self._lock:
            if self._is_closed:
                available = self.ready.size + self._enqueuing
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
        """Close the barrier, so that new keys are refused.

        If `cancel_pending_enqueues`, also drop the incomplete elements. Raises CancelledError if
        the barrier is already closed, unless this call is the first that drops elements.
        """
        with self._lock:
            if self._is_closed and (self._is_cancelled or not cancel_pending_enqueues):
                raise CancelledError(f"Barrier '{self.name}' is already closed.")
            self._is_closed, self._is_cancelled = True, cancel_pending_enqueues
            if cancel_pending_enqueues:
                self._incomplete.clear()
                self._held_bytes.clear()
            must_close_queue = self._update_is_drained()
        if must_close_queue:
            self.ready.close(cancel_pending_enqueues, cancellation)
