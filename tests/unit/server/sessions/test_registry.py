import re
from typing import Any

import pytest

from runtime.foundation.errors import NotFoundError
from server.access.caller import LOCAL, Caller
from server.sessions.open_session import Lease, OpenSession
from server.sessions.registry import (
    MAX_TOMBSTONES,
    TOMBSTONE_SECONDS,
    SessionRegistry,
    new_session_id,
)
from server.sessions.session_errors import SessionGoneError, TooManySessionsError
from tests.unit.server.sessions.fake_clock import FakeClock

NO_SESSION: Any = None  # the registry does not look into sessions


@pytest.fixture
def time():
    return FakeClock()


@pytest.fixture
def registry(time):
    return SessionRegistry(max_open=2, clock=time.clock)


def opened(time, session_id, seconds=10.0):
    lease = Lease(seconds, time.now)
    return OpenSession(session_id, NO_SESSION, "", None, False, lease, time.clock)


def test_ids_are_unguessable_and_fit_the_contract():
    ids = {new_session_id() for _ in range(100)}
    assert len(ids) == 100 and all(re.fullmatch(r"[A-Za-z0-9_-]{22,}", each) for each in ids)


def test_a_closed_id_is_gone_and_later_forgotten(registry, time):
    session = opened(time, "a")
    registry.add(session)
    assert registry.get("a") is session and len(registry) == 1
    assert registry.remove("a", "Session has been closed.") is session
    assert registry.remove("a", "again") is None
    with pytest.raises(SessionGoneError, match=r"Session has been closed\."):
        registry.get("a")
    time.now += TOMBSTONE_SECONDS + 1
    with pytest.raises(NotFoundError, match="Session a is not found"):
        registry.get("a")
    assert not registry.is_gone("a")


def test_an_expired_session_is_gone_before_it_is_removed(registry, time):
    registry.add(opened(time, "a"))
    time.now = 10
    message = "Session lease expired at 2023-11-14T22:13:30.000Z"
    with pytest.raises(SessionGoneError, match=message):
        registry.get("a")
    (expired,) = registry.expired()
    registry.remove("a", expired.expiry_message)
    time.now = 20
    with pytest.raises(SessionGoneError, match=message):
        registry.get("a")


def test_only_the_latest_tombstones_are_kept(registry, time):
    for index in range(MAX_TOMBSTONES + 1):
        registry.add(opened(time, str(index)))
        registry.remove(str(index), "gone")
    assert not registry.is_gone("0") and registry.is_gone("1")


def test_sessions_that_are_being_opened_count(registry, time):
    registry.add(opened(time, "a", seconds=7))
    with registry.place(), pytest.raises(TooManySessionsError) as caught, registry.place():
        pass
    assert caught.value.retry_after_seconds == 7
    with registry.place():
        pass


def test_sessions_of_an_authenticated_owner_share_a_count_of_steps(time):
    registry = SessionRegistry(2, time.clock, max_owner_steps=7)
    alice, bob = (Caller(name, is_authenticated=True) for name in ("alice", "bob"))
    steps = registry.steps_of(alice)
    assert steps is not None and steps.most == 7
    assert registry.steps_of(alice) is steps
    assert registry.steps_of(bob) is not steps
    assert registry.steps_of(LOCAL) is None
