"""Conditional accumulators: they sum gradients; a taker gets the mean once there are enough.

Local and global steps are numbers of training steps. A gradient is stale, and is dropped, if its
local step is less than the accumulator's global step. A taker (an op that takes the mean or the
sum) waits in a queue, without blocking a thread, until as many gradients were added as it requires.
Taking resets the sum and increments the global step.

Guarantees: thread-safe (one lock, not held while Deferreds complete); takers are served in the
order of their calls; a cancelled taker leaves the queue.

TF: tensorflow/core/kernels/conditional_accumulator_base.h, conditional_accumulator.h,
sparse_conditional_accumulator.h
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import threading
from collections.abc import Iterable
from typing import Generic, TypeVar

import numpy as np

from runtime.foundation.errors import CancelledError, InvalidArgumentError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Deferred
from runtime.framework.partial_shapes import PartialShape, is_compatible
from runtime.framework.resource_manager import Resource
from runtime.framework.shapes import shape_text

_LOG = logging.getLogger(__name__)
Gradient = TypeVar("Gradient")
Outputs = np.ndarray | tuple[np.ndarray, ...]  # the outputs of an op that takes the mean or sum


@dataclasses.dataclass(slots=True, eq=False)
class _Taker:
    required: int
    deferred: Deferred = dataclasses.field(default_factory=Deferred)


class ConditionalAccumulator(Resource, Generic[Gradient]):
    """The sum of gradients, the number of gradients in it, and the queue of takers that wait."""

    type_name = "N10tensorflow26ConditionalAccumulatorBaseE"

    def __init__(self, name: str, dtype: DataType, shape: PartialShape, is_mean: bool) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.is_mean = is_mean
        self._lock = threading.Lock()  # guards everything below
        self._global_step = 0
        self._count = 0
        self._total: Gradient | None = None  # None if the sum has no gradients
        self._takers: collections.deque[_Taker] = collections.deque()

    # The methods that dense and sparse accumulators implement.

    def _check(self, gradient: Gradient, total: Gradient | None) -> None:
        raise NotImplementedError

    def _added(self, total: Gradient | None, gradient: Gradient) -> Gradient:
        raise NotImplementedError

    def _outputs(self, total: Gradient, count: int) -> Outputs:
        raise NotImplementedError

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the sum of the gradients."""
        return 0, (self._total,)

    # The methods that kernels call.

    @property
    def count(self) -> int:
        """The number of gradients in the sum."""
        with self._lock:
            return self._count

    def set_global_step(self, step: int) -> None:
        """Set the global step; later gradients whose local step is less than `step` are dropped."""
        with self._lock:
            if step < self._global_step:
                _LOG.warning(
                    "Accumulator %s: global step goes back from %d to %d",
                    self.name, self._global_step, step,
                )  # fmt: skip
            self._global_step = step

    def is_stale(self, local_step: int) -> bool:
        """Return whether `apply` would drop a gradient whose local step is `local_step`."""
        with self._lock:
            return local_step < self._global_step

    def apply(self, local_step: int, gradient: Gradient) -> None:
        """Add a gradient unless it is stale; raise InvalidArgumentError if its shape is wrong."""
        with self._lock:
            if local_step < self._global_step:
                return
            self._check(gradient, self._total)
            self._total = self._added(self._total, gradient)
            self._count += 1
            served = self._serve()
        _complete(served)

    def take(self, required: int, cancellation: CancellationManager) -> Outputs | Deferred:
        """Take the mean, or the sum, of at least `required` gradients.

        Return a Deferred of the outputs if there are fewer gradients or other takers wait.
        """
        taker = _Taker(required)
        with self._lock:
            self._takers.append(taker)
            served = self._serve()
        _complete(served)
        if served and served[-1][0] is taker:
            return served[-1][1]
        return taker.deferred.until_cancelled(cancellation, lambda: self._cancel(taker))

    def _serve(self) -> list[tuple[_Taker, Outputs]]:
        """Serve takers from the head of the queue; return (taker, outputs) pairs.

        The caller must hold the lock and must complete the Deferreds after releasing it.
        """
        served: list[tuple[_Taker, Outputs]] = []
        while self._takers and self._total is not None:
            if self._count < self._takers[0].required:
                break
            served.append((self._takers.popleft(), self._outputs(self._total, self._count)))
            self._total, self._count = None, 0
            self._global_step += 1
        return served

    def _cancel(self, taker: _Taker) -> None:
        with self._lock:
            if taker not in self._takers:
                return
            self._takers.remove(taker)
            served = self._serve()  # the next taker may require fewer gradients
        taker.deferred.set_error(CancelledError("TakeGrad operation was cancelled"))
        _complete(served)


def _complete(served: list[tuple[_Taker, Outputs]]) -> None:
    for taker, outputs in served:
        taker.deferred.set_value(outputs)


class DenseConditionalAccumulator(ConditionalAccumulator[np.ndarray]):
    """An accumulator of gradients that are arrays of the same shape."""

    def _check(self, gradient: np.ndarray, total: np.ndarray | None) -> None:
        expected: PartialShape
        if total is not None and total.shape != gradient.shape:
            expected = total.shape
        elif not is_compatible(self.shape, gradient.shape):
            expected = self.shape
        else:
            return
        raise InvalidArgumentError(
            f"Shape mismatch: expected {shape_text(expected)}, got {shape_text(gradient.shape)}"
        )

    def _added(self, total: np.ndarray | None, gradient: np.ndarray) -> np.ndarray:
        return gradient if total is None else total + gradient

    def _outputs(self, total: np.ndarray, count: int) -> np.ndarray:
        return total / total.dtype.type(count) if self.is_mean else total


@dataclasses.dataclass(frozen=True, slots=True)
class SparseGradient:
    """Some rows of a gradient, or of a sum of gradients."""

    indices: np.ndarray  # int64 [rows]: the index of each row in the gradient
    values: np.ndarray  # [rows, …]: the rows
    counts: np.ndarray  # int64 [rows]: the number of gradients that contain each row

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the arrays."""
        return 0, (self.indices, self.values, self.counts)


class SparseConditionalAccumulator(ConditionalAccumulator[SparseGradient]):
    """An accumulator of rows; the mean of a row is over the gradients that contain the row."""

    def _check(self, gradient: SparseGradient, total: SparseGradient | None) -> None:
        got = gradient.values.shape
        rows = self.shape[0] if self.shape else -1
        for place in np.flatnonzero(gradient.indices >= rows) if rows >= 0 else ():
            raise InvalidArgumentError(
                f"Shape mismatch: index of slice {place} exceeded limits of shape; "
                f"index is {gradient.indices[place]} exceeded {rows}"
            )
        if total is not None:
            if len(got) != total.values.ndim:
                raise InvalidArgumentError(
                    f"Shape mismatch: expected values rank {total.values.ndim}, got {len(got)}"
                )
            _check_rows(total.values.shape[1:], got)
            return
        wanted = self.shape or ()
        if len(got) < len(wanted):
            raise InvalidArgumentError(
                f"Shape mismatch: expected values rank at least {len(wanted)}, got {len(got)}"
            )
        _check_rows(wanted[1:], got)

    def _added(self, total: SparseGradient | None, gradient: SparseGradient) -> SparseGradient:
        if total is None:
            return gradient
        places = _merge_places(total.indices, gradient.indices)
        indices = np.zeros(places.max(initial=-1) + 1, np.int64)
        indices[places] = np.concatenate([total.indices, gradient.indices])
        values = np.zeros((len(indices), *total.values.shape[1:]), total.values.dtype)
        counts = np.zeros(len(indices), np.int64)
        np.add.at(values, places, np.concatenate([total.values, gradient.values]))
        np.add.at(counts, places, np.concatenate([total.counts, gradient.counts]))
        return SparseGradient(indices, values, counts)

    def _outputs(self, total: SparseGradient, count: int) -> Outputs:
        values = total.values
        if self.is_mean:
            shape = (-1, *(1,) * (values.ndim - 1))
            values = values / total.counts.astype(values.dtype).reshape(shape)
        sizes = [-1, *values.shape[1:]]  # −1 is an unknown size; known sizes of `shape` replace it
        for axis, size in enumerate(self.shape or ()):
            sizes[axis] = size if size >= 0 else sizes[axis]
        return total.indices, values, np.array(sizes, np.int64)


def _check_rows(expected: PartialShape, got: tuple[int, ...]) -> None:
    for axis, (want, size) in enumerate(zip(expected or (), got[1:], strict=False), 1):
        if want not in (-1, size):
            raise InvalidArgumentError(
                f"Shape mismatch: expected values dim {axis} to be {want}, got {size}"
            )


def _merge_places(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Merge two arrays of row indices; return the position of each element in the merged array.

    The positions for `one` come first, then the positions for `other`. As in TensorFlow, the arrays
    are merged like sorted lists even if they are not sorted.
    TF: SparseConditionalAccumulator::AddToAccumGradFunction
    """
    if all((each[:-1] < each[1:]).all() for each in (one, other)):
        return np.unique(np.concatenate([one, other]), return_inverse=True)[1]
    first, second = one.tolist(), other.tolist()
    places: tuple[list[int], list[int]] = ([], [])
    at, next_at, place = 0, 0, 0
    while at < len(first) or next_at < len(second):
        takes_first = next_at == len(second) or (at < len(first) and first[at] <= second[next_at])
        takes_second = at == len(first) or (next_at < len(second) and second[next_at] <= first[at])
        if takes_first:
            places[0].append(place)
            at += 1
        if takes_second:
            places[1].append(place)
            next_at += 1
        place += 1
    return np.array(places[0] + places[1], np.int64)
