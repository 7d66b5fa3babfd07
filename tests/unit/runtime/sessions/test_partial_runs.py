"""Partial runs that nobody goes on with, and those that end with their session."""

from __future__ import annotations

import threading

import pytest

from runtime.api import CancelledError, InvalidArgumentError
from runtime.sessions.partial_runs import PartialRuns
from tests.unit.runtime.sessions.graphs import X, direct_session, g1, queue_graph

SECONDS = 30  # to wait for what ends at once on a quiet machine


def test_an_abandoned_partial_run_ends() -> None:
    session = direct_session(g1())
    runs = session._partial_runs = PartialRuns(idle_seconds=0.05)
    handle = session.partial_run_setup(["x"], ["m:0", "n:0"])
    assert len(runs) == 1
    ended = threading.Event()
    while len(runs):
        ended.wait(0.01)  # the timer's thread needs a moment
    with pytest.raises(InvalidArgumentError) as caught:
        session.partial_run(handle, {"x": X}, ["m:0"])
    assert caught.value.message == "Must run 'setup' before performing partial runs!"


def test_a_part_renews_the_lease() -> None:
    session = direct_session(g1())
    session._partial_runs = PartialRuns(idle_seconds=SECONDS)
    handle = session.partial_run_setup(["x"], ["m:0", "n:0"])
    assert session.partial_run(handle, {"x": X}, ["m:0"]) == [6]
    assert len(session._partial_runs) == 1
    assert session.partial_run(handle, {}, ["n:0"]) == [-6]
    assert len(session._partial_runs) == 0


def test_a_waiting_part_ends_with_its_session() -> None:
    session = direct_session(queue_graph())
    handle = session.partial_run_setup([], ["deq:0"])
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            session.partial_run(handle, {}, ["deq:0"])
        except CancelledError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    session.close()
    thread.join(SECONDS)
    assert [str(error).splitlines()[0] for error in errors]
