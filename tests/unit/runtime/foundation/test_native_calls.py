"""Native calls are made by niced threads for the threads that hand them over, and no others."""

from __future__ import annotations

import os
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest

from runtime.foundation import native_calls
from runtime.foundation.native_calls import (
    HIGHEST_NICE,
    LONG_CALL_BYTES,
    PIECE_BYTES,
    native_call,
    pieces,
)
from runtime.foundation.priority_gate import gate
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.io.masked_crc32c import crc32c

T = TypeVar("T")
linux = pytest.mark.skipif(sys.platform != "linux", reason="threads have no nice values")


def nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def on(pool: ThreadPool, function: Callable[[], T]) -> T:
    """Return what a function returns on a thread of a pool, which ends then."""
    seen: list[T] = []
    done = threading.Event()

    def call() -> None:
        try:
            seen.append(function())
        finally:
            done.set()

    pool.schedule(call)
    assert done.wait(10)
    pool.shutdown()
    return seen[0]


def loading() -> ThreadPool:
    return ThreadPool("loads", 1, low_priority=True, hands_over=True)


@linux
def test_only_the_native_calls_of_a_pool_that_hands_over_are_niced() -> None:
    usual = nice()
    assert on(loading(), lambda: (nice(), native_call(nice))) == (usual, HIGHEST_NICE)
    assert on(ThreadPool("usual", 1), lambda: native_call(nice)) == usual
    assert native_call(nice) == usual


@linux
def test_threads_that_such_a_pool_starts_are_not_niced() -> None:
    seen: list[int] = []

    def start() -> None:
        thread = threading.Thread(target=lambda: seen.append(nice()))
        thread.start()
        thread.join()

    on(loading(), start)
    assert seen == [nice()]


def test_an_error_is_raised_where_the_call_was_made() -> None:
    def fail() -> str:
        with pytest.raises(ZeroDivisionError) as caught:
            native_call(divmod, 1, 0)
        return str(caught.value)

    assert "by zero" in on(loading(), fail)


@pytest.mark.parametrize(
    "size", [10, LONG_CALL_BYTES - 1, LONG_CALL_BYTES, 3 * LONG_CALL_BYTES + 5]
)
def test_checksums_are_the_same(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    assert on(loading(), lambda: crc32c(data)) == crc32c(data)


@pytest.mark.parametrize("is_busy", [False, True])
def test_there_are_pauses_while_normal_steps_run(
    is_busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    clock = types.SimpleNamespace(monotonic=time.monotonic, sleep=pauses.append)
    monkeypatch.setattr(native_calls, "time", clock)
    size = 3 * PIECE_BYTES + 5

    def work() -> list[tuple[int, int]]:
        seen = []
        for part in pieces(size):
            gate.ended += is_busy
            seen.append(part)
        return seen

    parts = on(loading(), work)
    assert [begin for begin, _ in parts] == [each * PIECE_BYTES for each in range(4)]
    assert [end for _, end in parts] == [*(begin for begin, _ in parts[1:]), size]
    assert len(pauses) == (4 if is_busy else 0)
    assert all(0 <= pause <= 0.02 for pause in pauses)


def test_other_threads_work_without_pieces() -> None:
    assert list(pieces(10 * PIECE_BYTES)) == [(0, 10 * PIECE_BYTES)]


def test_a_low_priority_thread_gives_way_after_a_long_native_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gave_way: list[threading.Thread] = []
    monkeypatch.setattr(gate, "give_way", lambda: gave_way.append(threading.current_thread()))

    def call() -> tuple[bool, bool]:
        with native_calls.long_native_call:
            before = threading.current_thread() in gave_way
        return before, threading.current_thread() in gave_way

    assert on(ThreadPool("low", 1, low_priority=True), call) == (False, True)
    assert on(ThreadPool("usual", 1), call) == (False, False)
