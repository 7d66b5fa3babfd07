import contextlib
import itertools
from typing import Any

import numpy as np
import pytest

from runtime.foundation.errors import Code, ResourceExhaustedError
from runtime.foundation.global_thread_pools import global_thread_pools
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType
from server.codec.session.short_run import StepNames
from server.sessions import open_session
from server.sessions.open_session import Lease, OpenSession
from server.sessions.session_errors import SessionGoneError
from server.steps.step_request import StepRequest
from tests.unit.server.sessions.fake_clock import WALL_OFFSET, FakeClock

NAMES = StepNames(("x:0",), ("y:0",), ())


class FakeSession:
    """Two pools, and a tensor that is looked up at a price."""

    graph_version = 0
    bytes_held = 0

    def __init__(self, pools):
        self.thread_pools = pools
        self.lookups = []

    def tensor_info(self, name):
        self.lookups.append(name)
        return DataType.FLOAT, None


@pytest.fixture
def time():
    return FakeClock()


def make(time, session: Any = None):
    session = session or FakeSession([])
    return OpenSession("id", session, "", None, False, Lease(10, 0), time.clock)


def test_pools_of_its_own_are_listed_under_its_id():
    named = global_thread_pools.get_or_create("open_session_named", 1)
    own = ThreadPool("Compute1", 1)
    session: Any = FakeSession([named, own])
    opened = make(FakeClock(), session)
    assert opened.thread_pools() == [("open_session_named", named), ("id/Compute1", own)]
    assert opened.own_thread_pools() == [("id/Compute1", own)]
    opened.runs_in_caller = True
    assert opened.own_thread_pools() == []
    own.shutdown()


def test_what_is_known_of_a_tensor_is_asked_once():
    session: Any = FakeSession([])
    opened = make(FakeClock(), session)
    assert opened.tensor_info("x") == opened.tensor_info("x") == (DataType.FLOAT, None)
    assert session.lookups == ["x"]


def step(request_id):
    return StepRequest(request_id=request_id, cancellation=CancellationManager())


def test_steps_are_counted_hold_the_lease_and_can_be_found(time):
    opened = make(time)
    first, second = step("r"), step("r")
    opened.begin_step(first)
    opened.begin_step(second)
    time.now = 100
    assert opened.is_running and not opened.lease.has_expired(time.now)
    assert opened.cancel("other") is False
    assert opened.cancel("r") is True
    opened.end_step(first)
    opened.end_step(second)
    assert first.cancellation.is_cancelled and second.cancellation.is_cancelled
    assert not opened.is_running and opened.steps == 2
    assert opened.last_used_at == WALL_OFFSET + 100
    assert opened.cancel("r") is False


def test_steps_of_one_request_id_are_told_apart_whatever_they_feed(time):
    opened = make(time)
    # Comparing arrays gives no truth value.
    first, second = (StepRequest({"x": np.zeros(2)}, request_id="r") for _ in range(2))
    opened.begin_step(first)
    opened.begin_step(second)
    opened.end_step(second)
    assert opened.is_running
    opened.end_step(first)
    assert not opened.is_running and opened.lease.expires_at(0) == opened.lease.deadline


@pytest.mark.parametrize("message", ["", "Session has been closed."])
def test_a_session_that_ended_while_its_request_was_read_runs_no_step(time, message):
    opened = make(time)
    opened.gone = message
    time.now = 9 if message else 10
    expected = message or "Session lease expired at 2023-11-14T22:13:30.000Z"
    with pytest.raises(SessionGoneError) as caught:
        opened.begin_step(step("r"))
    assert caught.value.message == expected
    assert not opened.is_running and opened.steps == 0 and opened.lease.deadline == 10


def test_a_step_that_ended_at_once_is_not_cancelled(time):
    opened = make(time)
    request = StepRequest(request_id="r")
    opened.begin_step(request)
    assert opened.cancel("r") is True  # nothing waits for it
    opened.end_step(request)


def test_all_steps_can_be_cancelled(time):
    opened = make(time)
    requests = [step("a"), step("b")]
    for request in requests:
        opened.begin_step(request)
    opened.cancel_all("over")
    messages = [each.cancellation.copy_of_error().message for each in requests]
    assert messages == ["over", "over"]


def test_a_session_that_holds_too_much_runs_no_step(time):
    session = FakeSession([])
    opened = make(time, session)
    opened.max_bytes = 10
    session.bytes_held = 11
    with pytest.raises(ResourceExhaustedError, match=r"11 bytes; sessions\.max_session_bytes"):
        opened.begin_step(step("r"))
    assert not opened.is_running and opened.steps == 0
    session.bytes_held = 10
    opened.begin_step(step("r"))


def test_counting_takes_a_bounded_share_of_time(time, monkeypatch):
    instants = itertools.count(step=0.02)  # each count takes 20 ms
    monkeypatch.setattr(open_session.time, "perf_counter", lambda: next(instants))

    class Large(FakeSession):
        counts = 0

        @property
        def bytes_held(self):
            self.counts += 1
            return 11

    for max_bytes in (10, 100):
        session = Large([])
        opened = make(time, session)
        opened.max_bytes = max_bytes
        time.now = 1000
        opened.lease.renew(time.now)
        for _ in range(100):  # a step every 20 ms, for 2 seconds
            time.now += 0.02
            with contextlib.suppress(ResourceExhaustedError):
                opened.check_may_run()
        assert session.counts == 2


def test_a_lease_runs_out_after_its_idle_time():
    lease = Lease(10, now=100)
    assert not lease.has_expired(109.9) and lease.has_expired(110)
    lease.renew(105)
    assert lease.expires_at(106) == 115
    lease.renew(106, seconds=2)
    assert lease.has_expired(108)


def test_a_lease_that_is_held_does_not_run_out():
    lease = Lease(10, now=0)
    lease.hold()
    lease.hold()
    assert not lease.has_expired(1000) and lease.expires_at(1000) == 1010
    lease.release(1000)
    assert not lease.has_expired(2000)
    lease.release(2000)
    assert not lease.has_expired(2009) and lease.has_expired(2010)


def test_the_spellings_of_a_tensor_that_are_kept_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_session, "MAX_KNOWN_TENSORS", 3)

    class Session:
        def tensor_info(self, name: str) -> tuple[DataType, None]:
            return DataType.FLOAT, None

    known = open_session._KnownTensors(Session())  # type: ignore[arg-type] # what it uses of one
    for zeros in range(1, 10):
        assert known["x:" + "0" * zeros] == (DataType.FLOAT, None)
        assert len(known) <= 3


def test_a_short_run_counts_and_renews_the_lease(time):
    opened = make(time)
    time.now = 4
    opened.check_may_run()
    opened.note_short_run(NAMES, 0.001)
    assert opened.steps == 1 and not opened.is_running
    assert opened.lease.deadline == 14
    assert opened.last_used_at == WALL_OFFSET + 4
    request = step("r")
    opened.begin_step(request)
    opened.note_short_run(NAMES, 0.001)  # which does not end the lease's hold by the other step
    time.now = 100
    assert not opened.lease.has_expired(time.now)


def test_the_last_steps_are_kept_newest_first_with_cut_names(time):
    opened = make(time)
    opened.note_short_run(NAMES, 0.001)
    request = step("r")
    request.feeds, request.fetches = {"a" * 500: 1, "b": 2}, ["c" * 500]
    request.pool, request.wait_seconds, request.code = "online", 0.25, Code.ABORTED
    opened.begin_step(request)
    assert opened.running_steps == [request]
    opened.end_step(request)
    assert opened.running_steps == []
    newest, oldest = opened.last_steps
    assert oldest == (WALL_OFFSET, "", NAMES, "", 0.0, 0.001, Code.OK)
    assert newest.request_id == "r" and newest.pool == "online" and newest.wait_seconds == 0.25
    assert newest.code is Code.ABORTED
    assert newest.names == ("a" * 120, 2, "c" * 120, 1, "", 0)
    for _ in range(open_session.MAX_LAST_STEPS):
        opened.note_short_run(NAMES, 0.002)
    assert len(opened.last_steps) == open_session.MAX_LAST_STEPS
    assert all(each.run_seconds == 0.002 for each in opened.last_steps)


def test_a_session_keeps_a_few_short_runs(time, monkeypatch):
    made = []

    def make_short_run(names, session):
        made.append(names)
        return None if names.fetches == ("unknown",) else object()

    monkeypatch.setattr(open_session, "make_short_run", make_short_run)
    opened = make(time)
    one, unknown = StepNames((), ("y",), ()), StepNames((), ("unknown",), ())
    assert opened.short_run(one) is opened.short_run(one) is not None
    assert made == [one]
    assert opened.short_run(unknown) is opened.short_run(unknown) is None
    assert made == [one, unknown, unknown]  # an extend may add the name
    for number in range(open_session.MAX_SHORT_RUNS):
        opened.short_run(StepNames((), (str(number),), ()))
    made.clear()
    opened.short_run(one)
    assert made == [one]
