"""The gate between normal and low-priority work, and the switch interval of the interpreter."""

import sys
import threading
import time
from collections.abc import Iterator

import pytest

from runtime.foundation import priority_gate, thread_pool
from runtime.foundation.priority_gate import (
    PAUSE_SECONDS,
    RESULT_SECONDS,
    SWITCH_INTERVAL_SECONDS,
    WAY_SECONDS,
    PriorityGate,
)
from runtime.foundation.thread_pool import ThreadPool

USUAL_SECONDS = 0.005  # Python's default


@pytest.fixture(autouse=True)
def usual_interval() -> Iterator[None]:
    """Begin with the usual interval, though low-priority pools of other tests may exist."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(USUAL_SECONDS)
    yield
    sys.setswitchinterval(before)


def close_to(seconds: float) -> object:
    return pytest.approx(seconds, abs=2e-6)  # the interpreter keeps whole microseconds


def test_the_lock_changes_hands_sooner_in_each_of_several_contexts() -> None:
    assert USUAL_SECONDS > SWITCH_INTERVAL_SECONDS
    gate = PriorityGate()
    seen = []
    with gate.short_turns():
        seen.append(sys.getswitchinterval())
        with gate.short_turns():  # as in another thread
            seen.append(sys.getswitchinterval())
        seen.append(sys.getswitchinterval())
    assert seen == [close_to(SWITCH_INTERVAL_SECONDS)] * 3
    assert sys.getswitchinterval() == close_to(USUAL_SECONDS)


def test_the_lock_changes_hands_sooner_while_a_low_priority_pool_exists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(thread_pool, "gate", PriorityGate())
    ThreadPool("normal", 1).shutdown()
    assert sys.getswitchinterval() == close_to(USUAL_SECONDS)
    pool, ended = ThreadPool("low", 2, low_priority=True), threading.Event()
    assert sys.getswitchinterval() == close_to(SWITCH_INTERVAL_SECONDS)
    pool.shutdown()
    pool.at_shutdown(ended.set)
    assert ended.wait(30)
    assert sys.getswitchinterval() == close_to(USUAL_SECONDS)


def test_a_shorter_interval_of_the_program_stays() -> None:
    sys.setswitchinterval(0.00001)
    gate = PriorityGate()
    with gate.short_turns():
        assert sys.getswitchinterval() == close_to(0.00001)
    assert sys.getswitchinterval() == close_to(0.00001)


def test_low_priority_tasks_pause_only_after_normal_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(priority_gate.time, "sleep", pauses.append)
    gate = PriorityGate()
    gate.pause_between_tasks()
    assert pauses == []
    gate.enter()
    gate.leave()
    gate.pause_between_tasks()
    gate.pause_between_tasks()
    assert pauses == [PAUSE_SECONDS]


class Clock:
    """Stands for the module `time` of the gate; its time passes only in `sleep`."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(priority_gate, "time", clock)
    return clock


def test_the_gate_stays_closed_until_the_caller_of_a_normal_step_has_its_result(
    clock: Clock,
) -> None:
    gate = PriorityGate()
    gate.pass_through()
    assert clock.pauses == []
    gate.enter()
    gate.leave()
    ended = clock.now
    gate.pass_through()
    assert clock.now >= ended + RESULT_SECONDS
    pauses = len(clock.pauses)
    gate.pass_through()
    assert len(clock.pauses) == pauses


def test_low_priority_tasks_give_way_once_for_each_normal_step(clock: Clock) -> None:
    gate = PriorityGate()
    gate.give_way()
    assert clock.pauses == []
    gate.enter()
    gate.leave()
    clock.now += RESULT_SECONDS
    gate.give_way()
    gate.give_way()
    assert clock.pauses == [WAY_SECONDS]


def test_a_low_priority_task_waits_for_the_normal_step_that_it_gave_way_to(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = PriorityGate()
    gate.enter()
    gate.leave()
    ends = clock.now + 0.002

    def sleep(seconds: float) -> None:
        if not clock.pauses:  # another thread takes the interpreter lock meanwhile
            gate.enter()
        Clock.sleep(clock, seconds)
        if gate.pending and clock.now >= ends:
            gate.leave()

    monkeypatch.setattr(clock, "sleep", sleep)
    gate.give_way()
    assert not gate.pending
    assert clock.now >= ends + RESULT_SECONDS


def test_a_low_priority_task_gives_way_before_it_wakes_its_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, order = PriorityGate(), []
    monkeypatch.setattr(thread_pool, "gate", gate)
    monkeypatch.setattr(gate, "give_way", lambda: order.append("way"))
    pool, woken = ThreadPool("low", 1, low_priority=True), threading.Event()

    def task() -> None:
        order.append("task")
        pool.after_task(lambda: (order.append("caller"), woken.set()))

    pool.schedule(task)
    assert woken.wait(30)
    ended = threading.Event()
    pool.shutdown()
    pool.at_shutdown(ended.set)
    assert ended.wait(30)  # the switch interval is the usual one again
    assert order == ["task", "way", "caller"]


def test_a_closed_gate_is_polled_a_few_times_only_and_for_no_longer_than_is_allowed(
    clock: Clock,
) -> None:
    gate = PriorityGate()
    gate.enter()
    gate.wait()
    assert sum(clock.pauses) == pytest.approx(priority_gate.MAX_WAIT_SECONDS)
    assert len(clock.pauses) < 12


def test_low_priority_work_waits_until_normal_work_has_ended(monkeypatch):
    monkeypatch.setattr(priority_gate, "MAX_WAIT_SECONDS", 60.0)
    gate = PriorityGate()
    order = []
    gate.enter()
    waiter = threading.Thread(target=lambda: (gate.wait(), order.append("low")))
    waiter.start()
    order.append("normal")
    gate.leave()
    waiter.join(30)
    assert order == ["normal", "low"]


def test_low_priority_work_ages():
    gate = PriorityGate()
    gate.enter()
    started = time.monotonic()
    gate.wait()
    assert time.monotonic() - started >= priority_gate.MAX_WAIT_SECONDS
    assert gate.pending == 1


def test_steps_of_other_processes_are_waited_for_too():
    gate = PriorityGate()
    published, elsewhere = [], [0]
    gate.share(published.append, lambda: elsewhere[0])
    gate.enter()
    gate.enter()
    assert gate.pending
    gate.leave()
    gate.leave()
    assert published == [1, 2, 1, 0]
    assert not gate.pending
    elsewhere[0] = 3
    assert gate.pending
    waiter = threading.Thread(target=gate.wait)
    waiter.start()
    elsewhere[0] = 0
    waiter.join(30)
    assert not waiter.is_alive()
