"""StepInPlace: a brief step that the thread which waits for it runs, in place of a pool's thread.

To hand a step to another thread and to wake up again takes 0.05 to 0.25 ms, up to 8 % of a step of
3 ms. The pool counts and limits such a step like any other (`ThreadPool.run_here`).

Guarantees: the values, errors and measured durations are those of an `AsynchronousStep` without a
time limit on that pool, but a step that is cancelled ends when its kernel does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

from runtime.executors.duration_estimate import size_of
from runtime.executors.step import BRIEF_SECONDS, Executor, FunctionRunner
from runtime.foundation.errors import InternalError, OpError
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import SessionState
from runtime.framework.resources.variable import shape_changes
from runtime.sessions.direct.executor_cache import CompiledStep
from runtime.sessions.direct.prepared_step import StepPreparer
from runtime.sessions.runtime_session import RunRequest, Tensor

_now = time.monotonic
_processor_time = time.thread_time


def brief_size(executor: Executor, state: SessionState, feeds: Iterable[Tensor]) -> int | None:
    """Return the size of the feeds if the step, which waits for none, is known to be brief.

    Else return None. `state` is the session's: what the step derives from variables may have to be
    computed first.
    """
    if (
        executor.brief_size < 0
        or executor.uses_threads
        or not all(isinstance(each, np.ndarray | np.generic) for each in feeds)
    ):
        return None
    size = size_of(feeds)
    if (
        size <= executor.brief_size
        and (executor.preparation_seconds < BRIEF_SECONDS or executor.is_prepared(state))
        and executor.is_predictable
    ):
        return size
    return None


class StepInPlace:
    """One step, which `run_on` runs; `cancellation` is the session's, `size` that of the feeds."""

    __slots__ = (
        "_cancellation", "_compiled", "_error", "_functions", "_request", "_size", "_steps",
        "_values",
    )  # fmt: skip

    def __init__(
        self,
        request: RunRequest,
        compiled: CompiledStep,
        steps: StepPreparer,
        functions: FunctionRunner | None,
        cancellation: CancellationManager,
        size: int,
    ) -> None:
        self._request = request
        self._compiled = compiled
        self._steps = steps
        self._functions = functions
        self._cancellation = cancellation
        self._size = size
        self._values: list[Tensor] = []
        self._error: OpError | None = None

    def run_on(self, pool: ThreadPool) -> list[Tensor] | None:
        """Run in place of a thread of `pool`; return the fetched values, or None if all are busy.

        Raises the error of the step.
        """
        cancellation = self._cancellation
        try:
            if not pool.run_here(self._run, owner=self._request.owner, ended=cancellation.error):
                return None
            if cancellation.error:  # the session has closed: so the step ends on a pool too
                raise cancellation.copy_of_error()
            if self._error is not None:
                raise self._error
            return self._values
        finally:
            self._error = None  # whose traceback refers to this step

    def _run(self) -> None:
        if self._cancellation.error:
            return
        executor, size = self._compiled.executor, self._size
        began, worked_before, shapes = _now(), _processor_time(), shape_changes.count
        is_completed = False
        try:
            self._values = self._steps.run_plain(
                self._request, self._compiled, self._functions, self._cancellation
            )
            is_completed = True
        except OpError as error:
            self._error = error
        except Exception as error:
            self._error = InternalError(f"{type(error).__name__}: {error}")
            raise
        finally:
            seconds = _now() - began
            worked = min(seconds, _processor_time() - worked_before)
            executor.duration.note(worked, is_completed=is_completed, size=size)
            executor.measured_shapes = shapes
            if is_completed:
                executor.note_run(seconds, size)
