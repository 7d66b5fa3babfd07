from typing import Any

import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.thread_pool import ThreadPool, global_thread_pools
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType
from server.sessions.lease import Lease
from server.sessions.open_session import OpenSession
from tests.unit.server.sessions.fake_clock import WALL_OFFSET, FakeClock


class FakeSession:
    """Two pools, and a tensor that is looked up at a price."""

    graph_version = 0

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


def test_steps_are_counted_hold_the_lease_and_can_be_found(time):
    opened = make(time)
    first, second = CancellationManager(), CancellationManager()
    with opened.step("r", first), opened.step("r", second):
        time.now = 100
        assert opened.is_running and not opened.lease.has_expired(time.now)
        assert opened.cancel("other") is False
        assert opened.cancel("r") is True
    assert first.is_cancelled and second.is_cancelled
    assert not opened.is_running and opened.steps == 2
    assert opened.last_used_at == WALL_OFFSET + 100
    assert opened.cancel("r") is False


def test_a_step_that_fails_is_not_left_running(time):
    opened = make(time)
    with pytest.raises(ZeroDivisionError), opened.step("r", CancellationManager()):
        raise ZeroDivisionError
    assert not opened.is_running


def test_all_steps_can_be_cancelled(time):
    opened = make(time)
    cancellations = [CancellationManager() for _ in range(2)]
    with opened.step("a", cancellations[0]), opened.step("b", cancellations[1]):
        opened.cancel_all("over")
    assert [each.copy_of_error().message for each in cancellations] == ["over", "over"]


def test_unknown_callables_are_told(time):
    with pytest.raises(InvalidArgumentError, match="No such callable handle"):
        make(time).callable_options(1)
