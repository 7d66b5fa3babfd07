"""AsynchronousStep: runs a step on a pool and completes its future.

Guarantees: the future is completed once, at the latest at the deadline or the cancellation of the
step, even if a kernel is still running; the references that the step holds are released when the
executor has ended.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import Callable, Hashable
from typing import Any

from runtime.foundation.deadline_timer import Timeout, deadline_timer
from runtime.foundation.errors import Code, DeadlineExceededError, InternalError, OpError
from runtime.foundation.priority_gate import gate
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.cancellation import RUN_CANCELLED, CancellationManager
from runtime.sessions.direct.prepared_step import PreparedStep
from runtime.sessions.runtime_session import Tensor

Prepare = Callable[[CancellationManager, ThreadPool | None], PreparedStep]


class AsynchronousStep:
    """One step and its future. `prepare` compiles and checks the step in the thread that runs it.

    `session` is the CancellationManager of the session, `given` the CancellationManager of the
    request, or None; `owner` is the owner of the step's tasks in a pool.
    """

    __slots__ = (
        "_answer_token",
        "_cancellation",
        "_given",
        "_owner",
        "_pool",
        "_prepare",
        "_prepared",
        "_timeout",
        "_token",
        "future",
    )

    def __init__(
        self,
        prepare: Prepare,
        session: CancellationManager,
        given: CancellationManager | None,
        owner: Hashable = None,
    ) -> None:
        self._prepare = prepare
        self._prepared: PreparedStep | None = None
        self._given = given
        self._owner = owner
        self._pool: ThreadPool | None = None
        self._timeout: Timeout | None = None
        self._token: int | None = None
        self._answer_token: int | None = None
        self._cancellation = CancellationManager(session)
        self.future: concurrent.futures.Future[list[Tensor]] = concurrent.futures.Future()

    def start(self, pool: ThreadPool | None, deadline: float | None) -> None:
        """Run on `pool`, or in the calling thread if it is None.

        `deadline` is an instant of `time.monotonic()`, or None.
        """
        given = self._given
        if given is not None:
            self._token = given.add_callback(lambda: self._cancellation.cancel(given.error[0]))
            if self._token is None:
                given.check()
        if deadline is not None:
            self._timeout = deadline_timer.call_at(deadline, self._expire)
        self._pool = pool
        if pool is None:
            self._execute()
            return
        # This must be the last callback, so that `failure` already has the error of a blocked op.
        self._answer_token = self._cancellation.add_callback(self._answer_cancelled, is_last=True)
        if self._answer_token is None:
            self._cancellation.check()
        pool.schedule(self._execute, owner=self._owner, ended=self._cancellation.error)

    def _expire(self) -> None:
        self._cancellation.cancel(DeadlineExceededError("Timed out waiting for notification"))

    def _answer_cancelled(self) -> None:
        """Complete the future at once; running kernels end when they check the cancellation."""
        failure = None if self._prepared is None else self._prepared.step.failure
        self._resolve(None, self._error_of_answer(failure) or self._cancellation.copy_of_error())

    def _error_of_answer(self, error: OpError | None) -> OpError | None:
        """Return the error for the future; a deadline or explicit cancellation takes precedence."""
        cancelled = self._cancellation.error
        if not cancelled or cancelled[0].message == RUN_CANCELLED:
            return error
        if (
            cancelled[0].code is Code.DEADLINE_EXCEEDED
            or error is None
            or error.code is Code.CANCELLED
        ):
            return self._cancellation.copy_of_error()
        return error

    def _execute(self) -> None:
        if self._cancellation.error:
            self.finish(None, self._cancellation.copy_of_error())
            return
        try:
            self._prepared = prepared = self._prepare(self._cancellation, self._pool)
            prepared.start(self._pool, self.finish)
        except OpError as error:
            self.finish(None, error)
        except BaseException as error:  # SystemExit too, or the caller would wait for ever
            self.finish(None, InternalError(f"{type(error).__name__}: {error}"))
            raise

    def finish(self, values: list[Any] | None, error: OpError | None) -> None:
        """Complete the future after the executor has ended or the start of the step has failed.

        In a low-priority pool's thread, the callers of normal steps may take the interpreter lock
        first, because what follows, with cold caches, takes 40 µs.
        """
        if self._pool is not None and self._pool.low_priority and self._pool.is_current:
            gate.give_way()
        if self._timeout is not None:
            self._timeout.cancel()
        if self._given is not None:
            self._given.remove_callback(self._token)
        self._cancellation.detach()
        # A callback that stays registered is a reference cycle: only the garbage collector would
        # free the tensors of the step.
        self._cancellation.remove_callback(self._answer_token)
        if error is not None or values is None or self._prepared is None:
            error = self._error_of_answer(error)
            self._answer(None, error or InternalError("A step ended without values"))
            return
        self._answer(self._prepared.results(values), None)

    def _answer(self, values: list[Tensor] | None, error: OpError | None) -> None:
        """Complete the future after the pool has counted the step in its metrics."""
        if self._pool is not None and self._pool.is_current:
            self._pool.after_task(lambda: self._resolve(values, error))
        else:
            self._resolve(values, error)

    def _resolve(self, values: list[Tensor] | None, error: OpError | None) -> None:
        """Complete the future, unless a deadline or a cancellation has done so already."""
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            if error is not None:
                forget_frames(error)
                self.future.set_exception(error)
            else:
                self.future.set_result(values or [])


def forget_frames(error: BaseException | None) -> None:
    """Remove the traceback of an error, whose frames hold references to the feeds and the step.

    An InternalError keeps its traceback, because its cause must be found.
    """
    while error is not None and not isinstance(error, InternalError):
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
