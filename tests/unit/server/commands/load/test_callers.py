import collections
import itertools
import threading

import pytest

from server.commands.load.callers import Callers
from server.commands.load.target import CallFailed, Size


class Fake:
    """A target whose calls do what `answer` does with their numbers."""

    description = "fake"
    in_process = True

    def __init__(self, answer):
        self._answer = answer
        self._numbers = itertools.count()
        self.opened = 0
        self.closed = 0
        self.calls = collections.Counter()  # of each thread
        self._lock = threading.Lock()

    def open(self):
        with self._lock:
            self.opened += 1
        return self

    def close(self):
        with self._lock:
            self.closed += 1

    def __call__(self):
        with self._lock:
            number = next(self._numbers)
            self.calls[threading.get_ident()] += 1
        self._answer(number)


def run(answer, size):
    target = Fake(answer)
    callers = Callers(target, size)
    callers.run()
    return target, callers.measured()


def test_every_caller_calls_and_every_call_is_counted():
    all_there = threading.Barrier(3)
    target, measured = run(
        lambda number: all_there.wait(30) if number < 3 else None, Size(0.05, 3, None, 0)
    )
    assert len(target.calls) == 3 and target.opened == target.closed == 3
    assert measured.requests == measured.latencies.count == sum(target.calls.values())
    assert measured.failed == {} and measured.under_way == measured.unsent == 0
    assert measured.seconds >= 0.05


def test_failures_are_counted_by_code_with_the_first_message():
    def answer(number):
        if number % 3:
            raise CallFailed("NOT_FOUND" if number % 3 == 1 else "INTERNAL", f"fault {number}")

    _, measured = run(answer, Size(0.05, 1, None, 0))
    assert measured.messages == {"NOT_FOUND": "fault 1", "INTERNAL": "fault 2"}
    assert measured.failed["NOT_FOUND"] >= 1
    assert measured.requests == measured.latencies.count + measured.failed.total()


def test_a_lost_connection_is_not_called_in_a_tight_loop():
    def answer(number):
        raise CallFailed("UNAVAILABLE", "refused", lost=True)

    _, measured = run(answer, Size(0.25, 1, None, 0))
    assert 1 <= measured.failed["UNAVAILABLE"] <= 3


def test_calls_are_made_at_their_rate():
    target, measured = run(lambda number: None, Size(0.2, 2, 100, 0))
    assert sum(target.calls.values()) <= 20
    assert measured.requests + measured.unsent == 20


def test_a_call_is_measured_from_the_time_it_was_due():
    """The first answer takes most of the run; those that it delays were due before."""
    now = threading.Event()

    def answer(number):
        if number == 0:
            now.wait(0.18)

    _, measured = run(answer, Size(0.2, 1, 100, 0))
    assert measured.latencies.percentile(50) > 0.01  # the calls themselves take microseconds


def test_what_is_due_without_a_free_caller_is_reported():
    block = threading.Event()
    _, measured = run(lambda number: block.wait(0.2), Size(0.1, 1, 100, 0))
    assert measured.requests == 1 and measured.unsent == 9


def test_an_interrupted_run_says_what_is_under_way(monkeypatch):
    monkeypatch.setattr("server.commands.load.callers._JOIN_SECONDS", 0.01)
    begun, block = threading.Event(), threading.Event()

    def answer(number):
        if number == 5:
            begun.set()
            block.wait(30)

    callers = Callers(Fake(answer), Size(1000, 1, None, 0))
    runner = threading.Thread(target=callers.run)
    runner.start()
    assert begun.wait(30)
    callers.stop()
    measured = callers.measured()
    assert (measured.requests, measured.under_way) == (5, 1)
    part, requests = callers.progress()
    assert 0 < part < 1 and requests == 5
    block.set()
    runner.join(30)
    assert not runner.is_alive()


def test_the_warm_up_raises_only_if_the_first_call_fails():
    def answer(number):
        if number:
            raise CallFailed("INTERNAL", "later")

    target = Fake(answer)
    Callers(target, Size(1, 1, None, 0.01)).warm_up()
    assert sum(target.calls.values()) > 1 and target.closed == 1

    def refuse(number):
        raise CallFailed("UNAVAILABLE", "refused")

    target = Fake(refuse)
    with pytest.raises(CallFailed, match="refused"):
        Callers(target, Size(1, 1, None, 0)).warm_up()
    assert target.closed == 1


def test_progress_before_the_run_is_nothing():
    assert Callers(Fake(lambda number: None), Size(1, 1, None, 0)).progress() == (0.0, 0)
