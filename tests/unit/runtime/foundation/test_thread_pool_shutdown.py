"""Shutdown of a pool: every task that was accepted runs, later tasks are refused."""

import threading

import pytest

from runtime.foundation.errors import ResourceExhaustedError
from runtime.foundation.priority_gate import gate
from runtime.foundation.thread_pool import ThreadPool

SECONDS = 30  # to wait for a thread


def test_a_pool_that_was_shut_down_takes_no_task():
    pool = ThreadPool("ended", 1)
    pool.shutdown()
    pending = gate.pending
    with pytest.raises(ResourceExhaustedError, match="Thread pool ended has been shut down"):
        pool.schedule(lambda: None)
    assert gate.pending == pending  # a refused task is not counted as pending


def test_what_was_taken_before_the_end_runs():
    for _ in range(20):
        pool, ended = ThreadPool("ending", 1), threading.Event()
        pool.at_shutdown(ended.set)
        taken, ran = [], []

        def schedule(pool=pool, taken=taken, ran=ran):
            try:
                while True:
                    pool.schedule(lambda: ran.append(None))
                    taken.append(None)
            except ResourceExhaustedError:
                pass

        thread = threading.Thread(target=schedule)
        thread.start()
        while not taken:
            pass
        pool.shutdown()
        thread.join(SECONDS)
        assert ended.wait(SECONDS)
        assert len(ran) == len(taken)
