"""Blocks of work in a kernel: which threads run them, and what happens when one fails."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from runtime.foundation import intra_op_pool
from runtime.foundation.intra_op_pool import (
    MIN_BLOCK_NANOSECONDS,
    IntraOpPool,
    set_thread_width,
    shard,
    thread_width,
)
from runtime.foundation.thread_pool import ThreadPool

SECONDS = 10  # to wait for another thread
LONG = float(MIN_BLOCK_NANOSECONDS)  # nanoseconds: one unit of work fills a block


@pytest.fixture(autouse=True)
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[IntraOpPool]:
    """A pool with idle helpers; the width of the test's thread is reset afterwards."""
    fresh = IntraOpPool()
    monkeypatch.setattr(intra_op_pool, "intra_op_pool", fresh)
    yield fresh
    set_thread_width(0)


def blocks_of(total: int, cost: float, multiple: int = 1) -> list[tuple[int, int]]:
    seen: list[tuple[int, int]] = []
    shard(total, cost, lambda start, limit: seen.append((start, limit)), multiple)
    return sorted(seen)


@pytest.mark.parametrize(
    ("width", "total", "multiple", "blocks"),
    [
        (1, 8, 1, [(0, 8)]),
        (2, 8, 1, [(0, 4), (4, 8)]),
        (4, 8, 1, [(0, 2), (2, 4), (4, 6), (6, 8)]),
        (4, 3, 1, [(0, 1), (1, 2), (2, 3)]),
        (4, 9, 4, [(0, 4), (4, 8), (8, 9)]),
        (2, 33, 16, [(0, 16), (16, 33)]),
        (2, 0, 1, [(0, 0)]),
    ],
)
def test_blocks_cover_the_work_once(
    width: int, total: int, multiple: int, blocks: list[tuple[int, int]]
) -> None:
    set_thread_width(width)
    assert blocks_of(total, LONG, multiple) == blocks


def test_small_work_is_one_block_in_the_thread_at_hand() -> None:
    set_thread_width(4)
    seen = []
    shard(100, LONG / 100, lambda start, limit: seen.append((start, limit, threading.get_ident())))
    assert seen == [(0, 100, threading.get_ident())]
    assert blocks_of(100, LONG / 40) == [(0, 50), (50, 100)]


def test_two_threads_work_at_once() -> None:
    set_thread_width(2)
    both = threading.Barrier(2, timeout=SECONDS)
    idents = set()

    def work(start: int, limit: int) -> None:
        both.wait()
        idents.add(threading.get_ident())

    shard(2, LONG, work)
    assert len(idents) == 2


def test_an_error_in_a_helper_is_raised_in_the_caller() -> None:
    set_thread_width(2)
    both = threading.Barrier(2, timeout=SECONDS)

    def work(start: int, limit: int) -> None:
        both.wait()
        if threading.current_thread().name == "tf_intra_op":
            raise ValueError("rows do not fit")

    with pytest.raises(ValueError, match=r"^rows do not fit$"):
        shard(2, LONG, work)
    assert blocks_of(2, LONG) == [(0, 1), (1, 2)]  # the pool still works


def test_helpers_see_how_numpy_is_to_treat_errors() -> None:
    set_thread_width(2)
    both = threading.Barrier(2, timeout=SECONDS)
    seen = []

    def work(start: int, limit: int) -> None:
        both.wait()
        seen.append(np.geterr()["divide"])

    with np.errstate(divide="raise"):
        shard(2, LONG, work)
    with np.errstate(divide="ignore"):
        shard(2, LONG, work)
    assert seen == ["raise", "raise", "ignore", "ignore"]


def test_a_block_does_not_ask_for_help_in_a_helper() -> None:
    set_thread_width(2)
    both = threading.Barrier(2, timeout=SECONDS)
    widths = {}

    def work(start: int, limit: int) -> None:
        both.wait()
        widths[threading.current_thread().name == "tf_intra_op"] = thread_width()

    shard(2, LONG, work)
    assert widths == {True: 1, False: 2}


def test_callers_side_by_side_get_no_helpers_on_top(pool: IntraOpPool) -> None:
    """While a caller and its helper work, a second caller runs all of its blocks itself."""
    begun, finish = threading.Barrier(3, timeout=SECONDS), threading.Event()

    def slow(start: int, limit: int) -> None:
        begun.wait()
        assert finish.wait(SECONDS)

    first = threading.Thread(target=pool.run, args=(slow, [0, 1, 2], 2))
    first.start()
    begun.wait()  # the first caller and its helper are in their blocks
    seen: list[tuple[int, int, int]] = []
    pool.run(lambda *block: seen.append((*block, threading.get_ident())), [0, 1, 2, 3], 2)
    assert seen == [(i, i + 1, threading.get_ident()) for i in range(3)]
    assert pool.num_threads == 1
    finish.set()
    first.join(SECONDS)
    both = threading.Barrier(2, timeout=SECONDS)
    pool.run(lambda start, limit: both.wait(), [0, 1, 2], 2)  # the helper is free again
    assert pool.num_threads == 1


@pytest.mark.parametrize(
    ("intra_op_threads", "low_priority", "width"), [(3, False, 3), (1, False, 1), (3, True, 1)]
)
def test_a_pool_gives_its_threads_a_width(
    intra_op_threads: int, low_priority: bool, width: int
) -> None:
    pool = ThreadPool("wide", 1, low_priority=low_priority, intra_op_threads=intra_op_threads)
    seen: queue.SimpleQueue[int] = queue.SimpleQueue()
    pool.schedule(lambda: seen.put(thread_width()))
    assert seen.get(timeout=SECONDS) == width
    pool.shutdown()


def test_threads_without_a_width_have_the_process_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intra_op_pool, "_process_width", [3])
    assert thread_width() == 3
    set_thread_width(2)
    assert thread_width() == 2


def test_threads_that_can_not_start_are_not_counted(
    pool: IntraOpPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    set_thread_width(4)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        assert blocks_of(8, LONG) == [(0, 2), (2, 4), (4, 6), (6, 8)]
        assert (pool.num_threads, pool._at_work) == (0, 0)
    assert blocks_of(8, LONG) == [(0, 2), (2, 4), (4, 6), (6, 8)]
    assert pool.num_threads == 3
