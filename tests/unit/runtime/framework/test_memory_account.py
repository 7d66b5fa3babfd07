"""Accounts: what is set aside, what is held, and until when."""

from __future__ import annotations

import gc
import math
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from runtime.foundation.errors import ResourceExhaustedError
from runtime.framework import memory_account
from runtime.framework.memory_account import (
    SYNC_BYTES,
    MemoryAccount,
    ProcessAccount,
    SessionAccount,
    bytes_held_by,
    bytes_of,
    owner_of,
)


def strings(*items: bytes) -> np.ndarray:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def test_what_is_set_aside_counts_in_the_whole_chain_until_it_is_released() -> None:
    process = MemoryAccount("the process", 100, "memory.max_process_bytes")
    session = SessionAccount(80, None, process)
    session.reserve(60)
    assert (session.left, process.left) == (20, 40)
    with pytest.raises(
        ResourceExhaustedError,
        match=r"^OOM: 21 more bytes are needed; the session has 60 bytes, the limit is 80 "
        r"\(sessions\.max_session_bytes\)$",
    ):
        session.reserve(21)
    with pytest.raises(ResourceExhaustedError, match=r"the process has 60 bytes, the limit is 100"):
        process.reserve(41)
    session.release(60)
    assert (session.left, process.left) == (80, 100)


def test_an_array_is_held_until_its_last_view_ends() -> None:
    process = MemoryAccount("the process")
    session = SessionAccount(None, None, process)
    array = np.zeros(1000)
    view = array[10:20].reshape(2, 5)
    session.hold(view)
    session.hold(array)  # is counted already
    assert session.used == process.used == 8000
    del array
    assert session.used == 8000
    del view
    assert session.used == process.used == 0


def test_an_array_counts_for_the_account_that_held_it_first() -> None:
    first, second = SessionAccount(None, None, None), SessionAccount(None, None, None)
    array = np.zeros(10)
    first.hold(array)
    second.hold(array)
    assert (first.used, second.used) == (80, 0)


def test_an_array_that_is_too_large_for_its_account_is_refused_afterwards() -> None:
    session = SessionAccount(100, None, None)
    array = np.zeros(100)
    with pytest.raises(ResourceExhaustedError, match="the session has 800 bytes, the limit is 100"):
        session.hold(array)
    del array
    gc.collect()
    assert session.used == 0


def test_strings_count_with_their_contents() -> None:
    array = strings(b"x" * 100, b"")
    assert bytes_of(array) == 16 + 100 + 2 * sys.getsizeof(b"")
    assert bytes_of(b"abc") == 3
    assert bytes_of(np.float64(1)) == 8
    assert bytes_of(object()) == 0
    same = np.full(1000, b"x" * 1000, object)
    session = SessionAccount(None, None, None)
    size = bytes_held_by(same, at_most=9000)  # the bound knows that they are one string
    session.hold(same, size)
    assert session.used == 9000


def test_the_owner_of_memory_that_is_no_array() -> None:
    array = np.frombuffer(b"x" * 80)
    assert owner_of(array[1:]) is array
    assert owner_of(np.float32(1)) is None


def test_a_step_has_an_account_below_that_of_its_session() -> None:
    session = SessionAccount(100, 50, None)
    step = session.of_step()
    step.reserve(40)
    assert (step.left, session.left) == (10, 60)
    with pytest.raises(ResourceExhaustedError, match=r"the step has 40 .*sessions\.max_step_bytes"):
        step.reserve(20)


def test_small_arrays_that_are_kept_are_counted_now_and_then() -> None:
    session = SessionAccount(1000, None, None)
    counts: list[int] = []

    def count() -> int:
        counts.append(1)
        return 500 if len(counts) < 2 else 1001

    session.count_kept = count
    for _ in range(2):
        session.note_kept(SYNC_BYTES // 2)
    assert len(counts) == 1
    session.note_kept(SYNC_BYTES // 2)
    with pytest.raises(ResourceExhaustedError, match="the session has 1001 bytes"):
        session.note_kept(SYNC_BYTES // 2)


def test_threads_hold_and_drop_at_the_same_time() -> None:
    session = SessionAccount(None, None, MemoryAccount("the process"))

    def work() -> None:
        for _ in range(300):
            session.reserve(10)
            array = np.zeros(10)
            session.hold(array)
            session.release(10)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.used == 0
    assert session.parent is not None and session.parent.used == 0
    assert session._reserved == 0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """What the machine says; the clock is `now`."""
    said = {"left": 1000, "resident": 100, "now": 50}
    monkeypatch.setattr(memory_account, "available_bytes", lambda: said["left"])
    monkeypatch.setattr(memory_account, "resident_bytes", lambda: said["resident"])
    monkeypatch.setattr(memory_account.time, "monotonic", lambda: float(said["now"]))
    yield said


def test_the_process_has_half_of_what_is_left_whatever_it_has(machine: dict[str, int]) -> None:
    process = ProcessAccount()
    assert process.limit is None and process.resident_limit is None
    process.set_limits(None, None)
    assert process.limit == 500
    assert process.resident_limit == 990  # nine tenths of 1100
    array = np.zeros(25)
    process.hold(array)
    machine.update(left=800, now=52)
    process.look()
    assert process.limit == 500  # what it has counts as left
    machine.update(left=400)
    process.look()
    assert process.limit == 500  # not yet a second later
    machine.update(now=54)
    process.look()
    assert process.limit == 300


def test_limits_that_are_set_stay(machine: dict[str, int]) -> None:
    process = ProcessAccount()
    process.set_limits(10, 20)
    machine.update(left=1, now=60)
    process.look()
    assert (process.limit, process.resident_limit) == (10, 20)
    process.remove_limits()
    assert (process.limit, process.resident_limit) == (None, None)
    machine.update(now=10**9)
    process.look()
    assert process.limit is None
    assert process._next_look == math.inf


def test_new_work_is_refused_above_the_watermark_and_growth_far_above(
    machine: dict[str, int],
) -> None:
    process = ProcessAccount()
    process.set_limits(None, 200)
    process.check_new_work()
    machine.update(resident=201)
    process.check_new_work()  # looked at a moment ago
    machine.update(now=51)
    text = r"^The process has 201 bytes of resident memory; new work is refused above 200 \(memory"
    with pytest.raises(ResourceExhaustedError, match=text):
        process.check_new_work()
    session = SessionAccount(None, None, process)
    session.check_kept()  # what runs goes on
    machine.update(resident=211)
    with pytest.raises(ResourceExhaustedError, match="has 211 bytes of resident memory"):
        session.check_kept()
