"""Coordinator and QueueRunner: threads that fill queues, and that stop together.

TF: tensorflow/python/training/coordinator.py, queue_runner_impl.py
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Sequence

from runtime.client.framework.default_stacks import default_sessions
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.graph_elements import GraphKeys
from runtime.client.framework.op_call import graph_of
from runtime.client.framework.operation import Operation, SessionLike, Tensor
from runtime.client.ops import op_function
from runtime.client.ops.data_flow_ops import QueueBase
from runtime.client.session import BaseSession
from runtime.foundation.errors import CancelledError, OpError, OutOfRangeError

# errors that queue operations raise after the input has ended
_END_OF_INPUT = (OutOfRangeError, CancelledError)


class Coordinator:
    """Stops a group of threads and waits for them; `join` raises the first error of any thread."""

    def __init__(
        self, clean_stop_exception_types: tuple[type[Exception], ...] = _END_OF_INPUT[:1]
    ) -> None:
        self._clean_stop_types = clean_stop_exception_types
        self._stop = threading.Event()
        self._lock = threading.Lock()  # guards _error and _threads
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []

    def should_stop(self) -> bool:
        """Return whether a stop was requested."""
        return self._stop.is_set()

    def request_stop(self, ex: BaseException | None = None) -> None:
        """Request a stop; `join` will raise `ex`.

        Only the first `ex` counts. Exceptions of the `clean_stop_exception_types` are ignored.
        """
        with self._lock:
            if (
                ex is not None
                and self._error is None
                and not isinstance(ex, self._clean_stop_types)
            ):
                self._error = ex
        self._stop.set()

    def clear_stop(self) -> None:
        """Withdraw the request to stop, and forget the error."""
        with self._lock:
            self._error = None
        self._stop.clear()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until a stop is requested; return False if `timeout` seconds pass first."""
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Add `thread` to the threads that `join` waits for."""
        with self._lock:
            self._threads.append(thread)

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Pass an exception raised inside to `request_stop` instead of raising it."""
        try:
            yield
        except Exception as error:
            self.request_stop(error)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until the threads end, at most `stop_grace_period_secs` after a stop is requested.

        Raises the error given to `request_stop`. Raises RuntimeError if threads still run and
        `ignore_live_threads` is not set.
        """
        with self._lock:
            waited = [*self._threads, *(threads or ())]
        while any(thread.is_alive() for thread in waited) and not self._stop.wait(0.01):
            pass
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            thread.join(max(0, deadline - time.monotonic()))
        with self._lock:
            self._threads = []
            error = self._error
        if error is not None:
            raise error
        alive = [thread.name for thread in waited if thread.is_alive()]
        if alive and not ignore_live_threads:
            raise RuntimeError(f"Coordinator stopped with threads still running: {' '.join(alive)}")


class QueueRunner:
    """Runs each enqueue operation in a thread until the input ends, then closes the queue."""

    def __init__(self, queue: QueueBase | Tensor, enqueue_ops: Sequence[Operation]) -> None:
        """Take a queue or its handle. Raises ValueError if there is no enqueue operation."""
        if not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        self.queue = queue
        self.enqueue_ops = list(enqueue_ops)
        handle = queue.queue_ref if isinstance(queue, QueueBase) else queue
        with graph_of([handle], get_default_graph).as_default():
            self.close_op = op_function("QueueCloseV2")(handle)
            self.cancel_op = op_function("QueueCloseV2")(handle, cancel_pending_enqueues=True)
        self._lock = threading.Lock()  # guards _running
        self._running = 0

    def create_threads(
        self,
        sess: BaseSession,
        coord: Coordinator | None = None,
        daemon: bool = False,
        start: bool = False,
    ) -> list[threading.Thread]:
        """Create a thread for each operation, and start it if `start` is set.

        If `coord` is given, one more thread closes the queue when a stop is requested.
        """
        self._running = len(self.enqueue_ops)
        threads = [
            threading.Thread(target=self._run, args=(sess, operation, coord), daemon=daemon)
            for operation in self.enqueue_ops
        ]
        if coord is not None:
            threads.append(
                threading.Thread(target=self._close_on_stop, args=(sess, coord), daemon=daemon)
            )
            for thread in threads:
                coord.register_thread(thread)
        if start:
            for thread in threads:
                thread.start()
        return threads

    def _run(self, sess: BaseSession, operation: Operation, coord: Coordinator | None) -> None:
        try:
            while coord is None or not coord.should_stop():
                sess.run(operation)
        except _END_OF_INPUT:
            pass
        except Exception as error:
            if coord is None:
                raise
            coord.request_stop(error)
        finally:
            with self._lock:
                self._running -= 1
                is_last = self._running == 0
            if is_last:
                self._end(sess, self.close_op)

    def _close_on_stop(self, sess: BaseSession, coord: Coordinator) -> None:
        coord.wait_for_stop()
        self._end(sess, self.cancel_op)

    @staticmethod
    def _end(sess: BaseSession, operation: Operation) -> None:
        with contextlib.suppress(OpError, RuntimeError):  # the queue or session may be closed
            sess.run(operation)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Add a queue runner to the runners that `start_queue_runners` starts."""
    get_default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: SessionLike | None = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Create the threads of all queue runners of the session's graph.

    They are started if `start` is set. Raises ValueError if `sess` is None and there is no default
    session.
    """
    session = sess if sess is not None else default_sessions.innermost
    if session is None:
        raise ValueError(
            "Cannot start queue runners: No default session is registered. Use `with "
            "sess.as_default()` or pass an explicit session to tf.start_queue_runners(sess=sess)"
        )
    return [
        thread
        for runner in session.graph.get_collection(collection)
        for thread in runner.create_threads(session, coord, daemon, start)
    ]
