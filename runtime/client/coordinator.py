"""Coordinator and QueueRunner: threads that fill queues, and their common end.

TF: tensorflow/python/training/coordinator.py, queue_runner_impl.py
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from runtime.client.data_flow_ops import QueueBase
from runtime.client.default_stacks import default_sessions
from runtime.client.graph import get_default_graph
from runtime.client.graph_elements import GraphKeys
from runtime.client.op_call import graph_of
from runtime.client.operation import Operation, Tensor
from runtime.client.ops import op_function
from runtime.client.session import BaseSession
from runtime.foundation.errors import CancelledError, OpError, OutOfRangeError

_ENDS = (OutOfRangeError, CancelledError)  # how a queue tells that there is no more


class Coordinator:
    """Asks threads to stop, waits for them, and raises in one what went wrong in another."""

    def __init__(self, clean_stop_exception_types: tuple[type[Exception], ...] = _ENDS[:1]) -> None:
        self._clean = clean_stop_exception_types
        self._stop = threading.Event()
        self._lock = threading.Lock()  # guards the two below
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []

    def should_stop(self) -> bool:
        """Whether somebody has asked the threads to stop."""
        return self._stop.is_set()

    def request_stop(self, ex: BaseException | None = None) -> None:
        """Ask the threads to stop; `join` raises `ex`, unless it is a clean end."""
        with self._lock:
            if ex is not None and self._error is None and not isinstance(ex, self._clean):
                self._error = ex
        self._stop.set()

    def clear_stop(self) -> None:
        """Forget that a stop was asked for."""
        with self._lock:
            self._error = None
        self._stop.clear()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until a stop is asked for; False when `timeout` seconds were over first."""
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Let `join` wait for a thread."""
        with self._lock:
            self._threads.append(thread)

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """What is raised inside asks the threads to stop."""
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
        """Wait for the end of the threads, no longer than the period once a stop is asked for.

        Raises what was given to `request_stop`, RuntimeError for threads that have not ended.
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
    """Enqueue operations that run, one thread each, until the input ends; then the queue closes."""

    def __init__(self, queue: QueueBase | Tensor, enqueue_ops: Sequence[Operation]) -> None:
        """For a queue or its handle; ValueError without an operation."""
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
        """A thread for each operation, and with a coordinator one that closes the queue."""
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
        except _ENDS:
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
        with contextlib.suppress(OpError, RuntimeError):  # closed already, or its session is
            sess.run(operation)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Let `start_queue_runners` start it."""
    get_default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Create, and start, the threads of all queue runners; ValueError without a session."""
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
