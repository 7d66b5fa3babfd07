"""AsynchronousStep: from a request to the end of its future.

Guarantees: the future ends once, at the deadline or the cancellation at the latest, even when a
kernel goes on behind it; what the step held is let go when the executor has ended.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import Callable
from typing import Any

from runtime.foundation.deadline_timer import Timeout, deadline_timer
from runtime.foundation.errors import Code, DeadlineExceededError, InternalError, OpError
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.cancellation import RUN_CANCELLED, CancellationManager
from runtime.sessions.direct.prepared_step import PreparedStep
from runtime.sessions.runtime_session import Tensor

Prepare = Callable[[CancellationManager, ThreadPool | None], PreparedStep]


class AsynchronousStep:
    """One step on its way. `prepare` compiles and checks it, in the thread that runs it."""

    __slots__ = (
        "_answer_token",
        "_cancellation",
        "_given",
        "_pool",
        "_prepare",
        "_prepared",
        "_timeout",
        "_token",
        "future",
    )

    def __init__(
        self, prepare: Prepare, session: CancellationManager, given: CancellationManager | None
    ) -> None:
        self._prepare = prepare
        self._prepared: PreparedStep | None = None
        self._given = given
        self._pool: ThreadPool | None = None
        self._timeout: Timeout | None = None
        self._token: int | None = None
        self._answer_token: int | None = None
        self._cancellation = CancellationManager(session)
        self.future: concurrent.futures.Future[list[Tensor]] = concurrent.futures.Future()

    def start(self, pool: ThreadPool | None, deadline: float | None) -> None:
        """Run on `pool`, or here and now; `deadline` is a `time.monotonic()` instant."""
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
        # Last, so that the answer is what the operation that waited says, when one did.
        self._answer_token = self._cancellation.add_callback(self._answer_cancelled, is_last=True)
        if self._answer_token is None:
            self._cancellation.check()
        pool.schedule(self._execute)

    def _expire(self) -> None:
        self._cancellation.cancel(DeadlineExceededError("Timed out waiting for notification"))

    def _answer_cancelled(self) -> None:
        """The future ends at once; what still runs behind it ends when it notices."""
        failure = None if self._prepared is None else self._prepared.step.failure
        self._resolve(None, self._told_first(failure) or self._cancellation.copy_of_error())

    def _told_first(self, error: OpError | None) -> OpError | None:
        """What the client hears: a deadline or an explicit cancellation goes before `error`."""
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
        except Exception as error:
            self.finish(None, InternalError(f"{type(error).__name__}: {error}"))
            raise

    def finish(self, values: list[Any] | None, error: OpError | None) -> None:
        """The executor has ended, or could not begin."""
        if self._timeout is not None:
            self._timeout.cancel()
        if self._given is not None:
            self._given.remove_callback(self._token)
        self._cancellation.detach()
        # Nothing may refer to itself: what it holds would stay until the collector comes by.
        self._cancellation.remove_callback(self._answer_token)
        if error is not None or values is None or self._prepared is None:
            error = self._told_first(error)
            self._answer(None, error or InternalError("A step ended without values"))
            return
        self._answer(self._prepared.results(values), None)

    def _answer(self, values: list[Tensor] | None, error: OpError | None) -> None:
        """End the future, when the pool has counted the step: its figures then include it."""
        if self._pool is not None and self._pool.is_current:
            self._pool.after_task(lambda: self._resolve(values, error))
        else:
            self._resolve(values, error)

    def _resolve(self, values: list[Tensor] | None, error: OpError | None) -> None:
        """End the future; a deadline or a close may have been faster."""
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            if error is not None:
                forget_frames(error)
                self.future.set_exception(error)
            else:
                self.future.set_result(values or [])


def forget_frames(error: BaseException | None) -> None:
    """Let go of the frames that an error went through: they hold feeds, and the step itself.

    An internal error keeps them: somebody has to look for its cause.
    """
    while error is not None and not isinstance(error, InternalError):
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
