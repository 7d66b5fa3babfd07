"""Batches of the tensors of concurrent steps, and the distribution of results to the steps.

Each step adds its tensors to a batch and gets an id. The last step of a batch continues with the
rows of all steps and an index `[steps, 3]`, which has a row (id, start, end) for each step; the
other steps continue with tensors that have no rows. The results that the last step computes are
distributed to all steps of the batch by their ids.

Guarantees: thread-safe; no thread blocks. A step that has to wait gets a Deferred, which completes
when the batch is complete, at the timeout, or when the step is cancelled.

TF: tensorflow/core/kernels/batch_kernels.cc (BatchResource, UnbatchResource, UnbatchGradResource)
"""

from __future__ import annotations

import dataclasses
import secrets
import sys
import threading
import time
from collections.abc import Iterable, Sequence

import numpy as np

from runtime.foundation.deadline_timer import Timeout, deadline_timer
from runtime.foundation.errors import (
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
    as_op_error,
)
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import Deferred
from runtime.framework.resource_manager import Resource

MICROSECONDS = 1e-6
_WAITING_BYTES = 1500  # of a waiting step's Deferreds, callbacks and timer


def _until_cancelled(waiting: Deferred, cancellation: CancellationManager) -> Deferred:
    """Return a Deferred of the result of `waiting`, or CancelledError if the step is cancelled."""
    return waiting.until_cancelled(
        cancellation,
        lambda: waiting.set_error(CancelledError("Waiting for a batch was cancelled")),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """The tensors of one step in a batch, and the Deferred of its outputs."""

    key: int
    tensors: Sequence[np.ndarray]
    outputs: Deferred

    @property
    def rows(self) -> int:
        return len(self.tensors[0])


class StepBatcher(Resource):
    """Concatenates the tensors of steps along dimension 0, up to `max_batch_size` rows.

    A batch is complete when it has `max_batch_size` rows, when the rows of the next step do not
    fit, or when `timeout_micros` have passed since the first step was added. It is then padded with
    copies of its first row to the smallest of `allowed_sizes` that is large enough.
    """

    type_name = "N10tensorflow13BatchResourceE"

    def __init__(
        self, max_batch_size: int, timeout_micros: int, allowed_sizes: Sequence[int]
    ) -> None:
        # A negative size means no limit, because TensorFlow treats the size as an unsigned number.
        self._max_batch_size = max_batch_size if max_batch_size >= 0 else sys.maxsize
        self._timeout = timeout_micros * MICROSECONDS
        self._allowed_sizes = tuple(allowed_sizes)
        self._lock = threading.Lock()  # guards `_open` and `_timer`
        self._open: list[_Part] = []
        self._timer: Timeout | None = None

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the tensors of the open batch."""
        return 0, [value for part in list(self._open) for value in part.tensors]

    def add(self, tensors: Sequence[np.ndarray], cancellation: CancellationManager) -> Deferred:
        """Add the tensors of a step to the open batch.

        Return a Deferred of (batched tensors…, index `[steps, 3]`, id). All tensors must have the
        same number of rows. Raises InvalidArgumentError if they have more than `max_batch_size`.
        """
        part = _Part(secrets.randbits(63), tensors, Deferred())
        if part.rows > self._max_batch_size:
            raise InvalidArgumentError(
                f"Task size {part.rows} is larger than maximum input batch size "
                f"{self._max_batch_size}"
            )
        complete = []
        with self._lock:
            if sum(each.rows for each in self._open) + part.rows > self._max_batch_size:
                complete.append(self._close())
            self._open.append(part)
            if sum(each.rows for each in self._open) == self._max_batch_size:
                complete.append(self._close())
            elif len(self._open) == 1:
                opened = self._open
                self._timer = deadline_timer.call_at(
                    time.monotonic() + self._timeout, lambda: self._expire(opened)
                )
        result = _until_cancelled(part.outputs, cancellation)
        for parts in complete:
            self._finish(parts)
        return result

    def _close(self) -> list[_Part]:
        """Remove and return the open batch; the caller must hold the lock."""
        parts, self._open = self._open, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return parts

    def _expire(self, opened: list[_Part]) -> None:
        with self._lock:
            if self._open is not opened:
                return
            self._close()
        self._finish(opened)

    def _finish(self, parts: list[_Part]) -> None:
        """Complete the Deferreds of all steps of a complete batch."""
        ends = np.cumsum([part.rows for part in parts]).tolist()
        starts = [0, *ends[:-1]]
        keys = [part.key for part in parts]
        index = np.array(list(zip(keys, starts, ends, strict=True)), np.int64)
        padding = min((size for size in self._allowed_sizes if size >= ends[-1]), default=ends[-1])
        padding -= ends[-1]
        try:
            batched = [
                np.concatenate([*values, *[values[0][:1]] * padding])
                for values in zip(*(part.tensors for part in parts), strict=True)
            ]
        except (ValueError, MemoryError) as caught:
            error = as_op_error(caught)
            if isinstance(caught, ValueError):
                shapes = "; ".join(str([each.shape for each in part.tensors]) for part in parts)
                text = f"Shapes of a batch must agree beyond the rows: {shapes}"
                error = InvalidArgumentError(text)
            for part in parts:
                part.outputs.set_error(error.copy())
            return
        for part in parts[:-1]:
            empty = [each[:0] for each in part.tensors]
            part.outputs.set_value((*empty, np.zeros((0, 3), np.int64), np.int64(part.key)))
        parts[-1].outputs.set_value((*batched, index, np.int64(parts[-1].key)))


class StepUnbatcher(Resource):
    """Distributes the rows that the last step of a batch computed to the steps of the batch."""

    type_name = "N10tensorflow15UnbatchResourceE"

    def __init__(self, timeout_micros: int) -> None:
        self._timeout = timeout_micros * MICROSECONDS
        self._lock = threading.Lock()  # guards the fields below
        self._rows: dict[int, np.ndarray] = {}  # rows that their step has not yet taken, by id
        self._waiting: dict[int, Deferred] = {}

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the rows that no step has taken yet, and what waiting steps take here."""
        return _WAITING_BYTES * len(self._waiting), list(self._rows.values())

    def exchange(
        self,
        parts: Sequence[tuple[int, np.ndarray]],
        key: int,
        cancellation: CancellationManager,
    ) -> np.ndarray | Deferred:
        """Distribute `parts`, (id, rows) pairs, and return the rows of the step whose id is `key`.

        If no call has passed these rows yet, return a Deferred of them; it fails with
        DeadlineExceededError after the timeout. Raises AlreadyExistsError if another step waits
        with the same id, or if `parts` has rows for an id whose earlier rows no step has taken.
        """
        with self._lock:
            if key in self._rows:
                return self._rows.pop(key)
            if key in self._waiting:
                raise AlreadyExistsError("Multiple session runs with the same batch key.")
            own = self._waiting[key] = Deferred()
            ready = []
            kept = {}
            is_twice = False
            for each, rows in parts:
                if each in self._waiting:
                    ready.append((self._waiting.pop(each), rows))
                elif each in self._rows:
                    is_twice = True
                    break
                else:
                    self._rows[each] = kept[each] = rows
            is_served = key not in self._waiting
        for deferred, rows in ready:
            deferred.set_value(rows)
        if kept or not is_served:
            deadline = time.monotonic() + self._timeout
            deadline_timer.call_at(deadline, lambda: self._expire(own, key, kept))
        if is_twice:
            raise AlreadyExistsError("Multiple tensors returned for same batch key.")
        return _until_cancelled(own, cancellation)

    def _expire(self, own: Deferred, key: int, kept: dict[int, np.ndarray]) -> None:
        """Drop the rows in `kept` that no step has taken; fail `own` unless it is complete."""
        with self._lock:
            if self._waiting.get(key) is own:
                del self._waiting[key]
            for other, rows in kept.items():
                if self._rows.get(other) is rows:
                    del self._rows[other]
        own.set_error(DeadlineExceededError("Batched data did not arrive within timeout window."))


class StepGradientBatcher(Resource):
    """Concatenates the gradients of the steps of a batch, for the step that computed the batch."""

    type_name = "N10tensorflow19UnbatchGradResourceE"

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the fields below
        self._gradients: dict[int, np.ndarray] = {}
        self._batches: list[tuple[list[int], Deferred]] = []  # (ids, result) of incomplete batches

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the gradients of incomplete batches."""
        return 0, list(self._gradients.values())

    def add(
        self,
        gradient: np.ndarray,
        key: int,
        keys: list[int] | None,
        cancellation: CancellationManager,
    ) -> np.ndarray | Deferred:
        """Add the gradient of the step whose id is `key`.

        If this step computed the batch, `keys` must be the ids of all steps of the batch, and the
        result is a Deferred of the concatenated gradients of these steps. Otherwise `keys` must be
        None, and the result has no rows. Raises InvalidArgumentError if two steps have the same id.
        """
        with self._lock:
            if key in self._gradients:
                raise InvalidArgumentError("Two runs with the same batch key.")
            self._gradients[key] = gradient
            own = Deferred()
            if keys is not None:
                self._batches.append((list(dict.fromkeys(keys)), own))
            lacking, joined = [], []
            for wanted, deferred in self._batches:
                if self._gradients.keys() >= set(wanted):
                    joined.append((deferred, [self._gradients.pop(each) for each in wanted]))
                else:
                    lacking.append((wanted, deferred))
            self._batches = lacking
        for deferred, parts in joined:
            try:
                gradients = np.concatenate(parts)
            except ValueError:
                deferred.set_error(_different_shapes(parts))
            except MemoryError as error:
                deferred.set_error(as_op_error(error))
            else:
                deferred.set_value(gradients)
        return gradient[:0] if keys is None else _until_cancelled(own, cancellation)


def _different_shapes(parts: Sequence[np.ndarray]) -> OpError:
    return InvalidArgumentError(
        "Gradients of a batch must agree beyond the rows: "
        + ", ".join(str(part.shape) for part in parts)
    )


def parts_of(batched: np.ndarray, index: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Return (id, rows of `batched`) for each row (id, start, end) of `index` `[steps, 3]`.

    As in TensorFlow, the rows are taken consecutively; only the lengths `end - start` are used.
    """
    keys = index[:, 0].tolist()
    ends = np.cumsum(index[:, 2] - index[:, 1]).tolist()
    return [
        (key, batched[start:end]) for key, start, end in zip(keys, [0, *ends], ends, strict=False)
    ]
