"""The timer of deadlines: callbacks run in order and once; cancelled ones are dropped."""

from __future__ import annotations

import math
import threading
import time

import pytest

from runtime.foundation import deadline_timer
from runtime.foundation.deadline_timer import DeadlineTimer

SECONDS = 30  # the longest time that a test waits for a callback


def test_callbacks_come_in_the_order_of_their_instants() -> None:
    timer, called, ended = DeadlineTimer(), list[int](), threading.Event()
    now = time.monotonic()
    timer.call_at(now + 0.03, ended.set)
    for number in (2, 1):
        timer.call_at(now + 0.01 * number, lambda number=number: called.append(number))
    assert ended.wait(SECONDS)
    assert called == [1, 2]
    assert time.monotonic() - now >= 0.03


def test_a_cancelled_one_is_not_called() -> None:
    timer, called, ended = DeadlineTimer(), list[str](), threading.Event()
    now = time.monotonic()
    timer.call_at(now + 0.01, lambda: called.append("cancelled")).cancel()
    timer.call_at(now + 0.02, ended.set)
    assert ended.wait(SECONDS)
    assert called == []


def test_what_was_cancelled_does_not_pile_up_until_its_instant() -> None:
    timer, ended = DeadlineTimer(), threading.Event()
    far = time.monotonic() + 3600
    kept = timer.call_at(far, lambda: None)
    for _ in range(10 * deadline_timer._MIN_CANCELLED):
        timeout = timer.call_at(far, lambda: None)
        timeout.cancel()
        timeout.cancel()  # a second cancel is not counted
    assert len(timer) <= 2 * deadline_timer._MIN_CANCELLED
    assert kept.callback is not None
    timer.call_at(time.monotonic(), ended.set)  # the timer still runs callbacks
    assert ended.wait(SECONDS)


def test_a_callback_that_fails_ends_nothing() -> None:
    timer, ended = DeadlineTimer(), threading.Event()
    timer.call_at(time.monotonic(), lambda: 1 / 0)
    timer.call_at(time.monotonic() + 0.01, ended.set)
    assert ended.wait(SECONDS)


@pytest.mark.parametrize("far", [1e10, 2.0**63 / 1000, 1e300, math.inf])
def test_a_deadline_beyond_any_wait_stops_no_other(far: float) -> None:
    timer, ended = DeadlineTimer(), threading.Event()
    timeout = timer.call_at(time.monotonic() + far, lambda: None)
    timer.call_at(time.monotonic() + 0.001, ended.set)
    assert ended.wait(SECONDS)
    timer.call_at(time.monotonic() + 0.001, ended.clear)
    while ended.is_set():
        time.sleep(0)
    timeout.cancel()
