"""Staging areas: some steps put tuples of tensors, other steps take them, in order or by key.

An attempt is a function that carries out an operation on the area, or returns `WAIT` if the
operation can't succeed yet. An attempt that has to wait stays in a list, without blocking a thread.
A thread that changes the area runs the attempts that can now succeed and completes their Deferreds.

Guarantees: thread-safe (one lock, not held while Deferreds complete); attempts are tried in the
order of their calls; a cancelled attempt leaves the list without having changed anything.

TF: tensorflow/core/kernels/stage_op.cc, map_stage_op.cc
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from runtime.foundation.errors import (
    CancelledError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
)
from runtime.framework.cancellation import CancellationManager
from runtime.framework.growth_limit import GrowthLimit
from runtime.framework.held_bytes import HeldBytes
from runtime.framework.op_kernel import Deferred
from runtime.framework.resource_manager import Resource
from runtime.framework.tensor_value import TensorValue

Outcome = Any  # what an attempt returns: the op's outputs, or WAIT if it can't succeed yet
Attempt = Callable[[], Outcome]
WAIT = object()
_ABSENT = object()  # stands for a part of a tuple that was taken or has not been put yet


class StagingArea(Resource):
    """The base class of both kinds of area: the limits and the list of attempts that wait.

    `capacity` (tuples) and `memory_limit` (bytes) are limits; 0 means no limit.
    """

    def __init__(self, capacity: int, memory_limit: int) -> None:
        self._capacity = capacity
        self._memory_limit = memory_limit
        self._lock = threading.Lock()  # guards everything below
        self._bytes = 0  # of the elements of numbers, which `memory_limit` limits
        self._held_bytes = HeldBytes()  # of everything in the area
        self._attempts: list[tuple[Attempt, Deferred]] = []

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the tuples in the area; those of waiting steps are the steps'."""
        return self._held_bytes.bytes, ()

    def limit_growth(self, limit: GrowthLimit) -> None:
        """Report later tuples to `limit`."""
        self._held_bytes.limit = limit

    def run(self, attempt: Attempt, cancellation: CancellationManager) -> Outcome:
        """Run `attempt`; return the outputs, or a Deferred of them if the attempt has to wait."""
        deferred = Deferred()
        entry = (attempt, deferred)
        with self._lock:
            self._attempts.append(entry)
            done = self._advance()
        mine = [outcome for each, outcome in done if each is deferred]
        _complete([each for each in done if each[0] is not deferred])
        if mine:
            if isinstance(mine[0], OpError):
                raise mine[0]
            return mine[0]
        return deferred.until_cancelled(cancellation, lambda: self._cancel(entry))

    def _advance(self) -> list[tuple[Deferred, Outcome]]:
        """Run attempts until all that are left have to wait.

        Return (Deferred, outputs or error) for each attempt that ended; the Deferreds are not
        completed yet. The caller must hold the lock.
        """
        done: list[tuple[Deferred, Outcome]] = []
        moved = True
        while moved:
            moved = False
            for entry in list(self._attempts):
                try:
                    outcome = entry[0]()
                except OpError as error:
                    outcome = error
                if outcome is not WAIT:
                    self._attempts.remove(entry)
                    done.append((entry[1], outcome))
                    moved = True
        return done

    def _cancel(self, entry: tuple[Attempt, Deferred]) -> None:
        with self._lock:
            if entry not in self._attempts:
                return
            self._attempts.remove(entry)
        entry[1].set_error(CancelledError("Staging operation was cancelled"))

    def _check_size(self, size: int) -> None:
        if self._memory_limit and size > self._memory_limit:
            raise ResourceExhaustedError(
                f"Attempted to insert tensors with combined size of '{size}' bytes into Staging "
                f"Area with a memory limit of '{self._memory_limit}'."
            )

    def _is_full(self, held: int, size: int) -> bool:
        return bool(
            (self._capacity and held >= self._capacity)
            or (self._memory_limit and self._bytes + size > self._memory_limit)
        )


def _complete(done: Sequence[tuple[Deferred, Outcome]]) -> None:
    for deferred, outcome in done:
        if isinstance(outcome, OpError):
            deferred.set_error(outcome)
        else:
            deferred.set_value(outcome)


def _size(values: Sequence[TensorValue]) -> int:
    return sum(getattr(value, "nbytes", 0) for value in values)


class StagingBuffer(StagingArea):
    """A first-in-first-out area. Calls of its methods must be passed to `run` as attempts."""

    type_name = "N10tensorflow12_GLOBAL__N_16BufferE"

    def __init__(self, capacity: int, memory_limit: int) -> None:
        super().__init__(capacity, memory_limit)
        self._tuples: list[tuple[TensorValue, ...]] = []

    def put(self, values: tuple[TensorValue, ...]) -> Outcome:
        """Add a tuple; return WAIT if there is no room.

        Raises ResourceExhaustedError if the tuple alone exceeds the memory limit.
        """
        size = _size(values)
        self._check_size(size)
        if self._is_full(len(self._tuples), size):
            return WAIT
        self._held_bytes.add(values)
        self._tuples.append(values)
        self._bytes += size
        return None

    def get(self) -> Outcome:
        """Take the oldest tuple; return WAIT if there is none."""
        if not self._tuples:
            return WAIT
        values = self._tuples.pop(0)
        self._bytes -= _size(values)
        self._held_bytes.drop(values)
        return values

    def peek(self, index: int) -> Outcome:
        """Return the tuple at `index` without taking it; return WAIT if there is none."""
        return self._tuples[index] if 0 <= index < len(self._tuples) else WAIT

    def clear(self) -> None:
        """Drop all tuples."""
        self._tuples.clear()
        self._bytes = 0
        self._held_bytes.clear()

    def size(self) -> int:
        """Return the number of tuples."""
        return len(self._tuples)


class StagingMap(StagingArea):
    """An area whose tuples have keys and may be put and taken in parts.

    Calls of its methods must be passed to `run` as attempts.
    """

    type_name = "N10tensorflow12_GLOBAL__N_110StagingMapE"

    def __init__(self, capacity: int, memory_limit: int, width: int, is_ordered: bool) -> None:
        super().__init__(capacity, memory_limit)
        self._width = width  # number of tensors in a tuple
        self._is_ordered = is_ordered
        self._complete: dict[int, list[TensorValue]] = {}
        self._incomplete: dict[int, list[TensorValue]] = {}
        self._keys: dict[int, np.ndarray] = {}  # the key tensor of each complete tuple, by key

    def put(
        self, tensor: np.ndarray, indices: Sequence[int], values: Sequence[TensorValue]
    ) -> Outcome:
        """Add parts of the tuple of a key; return WAIT if there is no room.

        If the key already has a complete tuple, another complete tuple is dropped. Raises
        InvalidArgumentError if an index is out of bounds or the part there was put before,
        ResourceExhaustedError if the parts alone exceed the memory limit.
        """
        size = _size(values)
        self._check_size(size)
        if self._is_full(len(self._complete), size):
            return WAIT
        if len(indices) == self._width:  # TensorFlow then ignores the indices
            self._held_bytes.add(values)
            self._add_complete(tensor, list(values))
        else:
            self._add_parts(tensor, indices, values)
        self._bytes += size
        return None

    def _add_parts(
        self, tensor: np.ndarray, indices: Sequence[int], values: Sequence[TensorValue]
    ) -> None:
        key = int(tensor.item())
        parts = list(self._incomplete.get(key, [_ABSENT] * self._width))
        for index, value in zip(indices, values, strict=False):  # surplus values are ignored
            self._check_index(key, index)
            if parts[index] is not _ABSENT:
                raise InvalidArgumentError(
                    f"The tensor for index '{index}' for key '{key}' was already initialized "
                    f"'{self._width}'."
                )
            parts[index] = value
        self._held_bytes.add(values[: len(indices)])
        self._incomplete[key] = parts
        if not any(part is _ABSENT for part in parts):
            del self._incomplete[key]
            self._add_complete(tensor, parts)

    def _add_complete(self, tensor: np.ndarray, parts: list[TensorValue]) -> None:
        """Add a complete tuple, or drop it if the key already has a complete tuple."""
        key = int(tensor.item())
        if key in self._complete:
            self._bytes -= _size(parts)
            self._held_bytes.drop(parts)
        else:
            self._complete[key], self._keys[key] = parts, tensor

    def get(self, key: int, indices: Sequence[int]) -> Outcome:
        """Take parts of the tuple of a key; return WAIT if the key has no complete tuple.

        Raises InvalidArgumentError if an index is out of bounds or the part there was taken before.
        """
        values = self.peek(key, indices)
        if values is not WAIT:
            parts = self._complete[key]
            self._held_bytes.drop([parts[index] for index in dict.fromkeys(indices)])
            for index in indices:
                parts[index] = _ABSENT
            self._bytes -= _size(values)
            if all(part is _ABSENT for part in parts):
                del self._complete[key], self._keys[key]
        return values

    def get_any(self, indices: Sequence[int]) -> Outcome:
        """Take parts of a complete tuple; return (key, parts…), or WAIT if there is no such tuple.

        An ordered map takes from the tuple with the smallest key. An unordered map takes from the
        newest tuple, which is nearly always the first in TensorFlow's unordered map.
        """
        if not self._complete:
            return WAIT
        key = min(self._complete) if self._is_ordered else next(reversed(self._complete))
        return self._keys[key], *self.get(key, indices)

    def peek(self, key: int, indices: Sequence[int]) -> Outcome:
        """Return parts of the tuple of a key without taking them; WAIT if it is not complete.

        Raises InvalidArgumentError if an index is out of bounds or the part there was taken before.
        """
        parts = self._complete.get(key)
        if parts is None:
            return WAIT
        for index in indices:
            self._check_index(key, index)
            if index >= len(parts) or parts[index] is _ABSENT:
                raise InvalidArgumentError(
                    f"Tensor at index '{index}' for key '{key}' has already been removed."
                )
        return tuple(parts[index] for index in indices)

    def _check_index(self, key: int, index: int) -> None:
        if not 0 <= index < self._width:
            raise InvalidArgumentError(
                f"Index '{index % 2**64}' for key '{key}' was out of bounds '{self._width}'."
            )

    def clear(self) -> None:
        """Drop all tuples, complete and incomplete."""
        self._complete.clear()
        self._incomplete.clear()
        self._keys.clear()
        self._bytes = 0
        self._held_bytes.clear()

    def size(self) -> int:
        """Return the number of complete tuples."""
        return len(self._complete)

    def incomplete_size(self) -> int:
        """Return the number of tuples that lack a part."""
        return len(self._incomplete)
