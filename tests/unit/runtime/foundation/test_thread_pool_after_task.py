"""Callbacks after a task: they run when the task is counted as completed."""

import concurrent.futures

from runtime.foundation.thread_pool import ThreadPool


def test_what_follows_a_task_sees_it_counted():
    pool = ThreadPool("after_task", 1)
    seen = concurrent.futures.Future()

    def task():
        assert pool.is_current
        pool.after_task(lambda: seen.set_result(pool.stats()))

    pool.schedule(task)
    stats = seen.result(timeout=10)
    assert (stats.running, stats.completed) == (0, 1)
    pool.shutdown()


def test_a_callback_that_fails_ends_nothing(caplog):
    pool = ThreadPool("after_failing", 1)
    done = concurrent.futures.Future()

    def task():
        pool.after_task(lambda: 1 / 0)
        pool.after_task(lambda: done.set_result(None))

    pool.schedule(task)
    done.result(timeout=10)
    assert "What follows a task of thread pool after_failing failed" in caplog.text
    pool.shutdown()


def test_a_task_that_asks_for_the_end_of_the_program_ends_no_thread(caplog):
    pool = ThreadPool("leaving", 1)
    done = concurrent.futures.Future()

    def leave():
        raise SystemExit

    pool.schedule(leave)
    pool.schedule(lambda: done.set_result(None))
    done.result(timeout=10)
    assert "A task of thread pool leaving failed" in caplog.text
    pool.shutdown()
