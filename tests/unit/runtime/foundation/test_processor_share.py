"""Nice values and scheduler slices of background threads."""

import ctypes
import os
import platform
import struct
import sys
import threading
from collections.abc import Callable
from concurrent import futures
from typing import TypeVar

import pytest

from runtime.foundation.native_calls import long_native_call
from runtime.foundation.processor_share import (
    HIGHEST_NICE,
    LONGEST_SLICE_SECONDS,
    SHORT_SLICE_SECONDS,
    leave_one_processor,
    share_processors,
)
from runtime.foundation.thread_pool import LOW_PRIORITY_NICE, NICE_BESIDE_PROCESS, ThreadPool

T = TypeVar("T")
SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}.get(platform.machine())
linux = pytest.mark.skipif(
    sys.platform != "linux" or SCHED_GETATTR is None, reason="how to ask the system is not known"
)


def nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def slice_seconds() -> float:
    """The scheduler slice of the calling thread; 0 where the system has no slices."""
    attributes = ctypes.create_string_buffer(48)
    if ctypes.CDLL(None).syscall(SCHED_GETATTR, 0, attributes, 48, 0):
        return 0.0
    nanos: int = struct.unpack_from("<Q", attributes, 24)[0]
    return nanos / 1e9


def seen_on(pool: ThreadPool) -> tuple[int, float]:
    seen: list[tuple[int, float]] = []
    done = threading.Event()

    def look() -> None:
        seen.append((nice(), slice_seconds()))
        done.set()

    pool.schedule(look)
    assert done.wait(10)
    pool.shutdown()
    return seen[0]


@linux
def test_only_the_calling_thread_changes():
    before = nice(), slice_seconds()
    seen = []
    higher = min(before[0] + 7, HIGHEST_NICE)

    def work() -> None:
        share_processors(higher, 0.05)
        seen.append((nice(), slice_seconds()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen[0][0] == higher
    assert seen[0][1] in (0.05, 0.0)  # systems without slices ignore it
    assert (nice(), slice_seconds()) == before


@linux
@pytest.mark.parametrize(("own_process", "expected"), [(False, 19), (True, 10)])
def test_threads_of_low_priority_pools_are_nice_and_soon_interrupted(own_process, expected):
    assert expected == (NICE_BESIDE_PROCESS if own_process else LOW_PRIORITY_NICE)
    pool = ThreadPool("shared", 1, low_priority=True, own_process=own_process)
    value, seconds = seen_on(pool)
    assert value == max(expected, nice())
    assert seconds in (SHORT_SLICE_SECONDS, 0.0)


@linux
def test_a_thread_of_low_priority_is_no_less_nice_than_who_made_it():
    nicer, seen = max(15, nice()), []

    def work() -> None:
        share_processors(nicer, SHORT_SLICE_SECONDS)
        seen.append(seen_on(ThreadPool("nicer", 1, low_priority=True, own_process=True))[0])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [nicer]


@linux
def test_long_native_calls_of_low_priority_threads_make_way_at_once():
    pool, seen = ThreadPool("native", 1, low_priority=True, own_process=True), []
    done = threading.Event()

    def work() -> None:
        with long_native_call:
            seen.append((nice(), slice_seconds()))
        seen.append((nice(), slice_seconds()))
        done.set()

    pool.schedule(work)
    assert done.wait(10)
    pool.shutdown()
    assert [each[0] for each in seen] == [max(NICE_BESIDE_PROCESS, nice())] * 2
    assert [each[1] for each in seen] in (
        [LONGEST_SLICE_SECONDS, SHORT_SLICE_SECONDS], [0.0, 0.0]
    )  # fmt: skip


@linux
def test_long_native_calls_of_other_threads_change_nothing():
    before = nice(), slice_seconds()
    with long_native_call:
        assert (nice(), slice_seconds()) == before


@linux
def test_threads_of_normal_pools_are_as_they_were():
    assert seen_on(ThreadPool("plain", 1)) == (nice(), slice_seconds())


def on_a_thread(work: Callable[[], T]) -> T:
    """What the work returns on a thread of its own, whose share of the processors ends with it."""
    with futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


@linux
def test_one_processor_is_left():
    before = os.sched_getaffinity(0)

    def work() -> tuple[set[int], set[int]]:
        leave_one_processor()
        return os.sched_getaffinity(0), on_a_thread(lambda: os.sched_getaffinity(0))

    own, inherited = on_a_thread(work)
    assert own == inherited
    assert own < before if len(before) > 1 else own == before
    assert len(own) == max(1, len(before) - 1)
    assert os.sched_getaffinity(0) == before


@linux
def test_a_thread_with_one_processor_keeps_it():
    def work() -> set[int]:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        before = os.sched_getaffinity(0)
        leave_one_processor()
        return before ^ os.sched_getaffinity(0)

    assert not on_a_thread(work)


def test_systems_that_give_threads_no_processors(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    leave_one_processor()
