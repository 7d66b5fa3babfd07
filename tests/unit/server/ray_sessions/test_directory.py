"""The directory of session hosts, without actors."""

from __future__ import annotations

import pytest

from runtime.errors import ResourceExhaustedError
from server.ray_sessions.directory import MAX_ENDED, RESERVED_SECONDS, Directory, HostRecord


def directory(max_open: int = 3) -> Directory:
    """A directory of two hosts."""
    made = Directory(max_open)
    for name in ("a", "b"):
        made.add(HostRecord(name, f"node {name}", f"address {name}", used_at=0))
    return made


def test_places_are_counted_over_all_hosts() -> None:
    known = directory()
    ticket = known.reserve("a", now=1)
    known.reserve("b", now=1)
    known.note("a", 2, [ticket], now=2)
    assert known.counts() == {"node a": 2, "node b": 1}
    with pytest.raises(ResourceExhaustedError, match=r"3 sessions are open.*sessions\.max_open"):
        known.reserve("a", now=3)
    known.note("a", 1, [], now=4)
    known.reserve("a", now=5)


def test_a_place_that_is_not_taken_is_free_again() -> None:
    known = directory(max_open=1)
    known.reserve("a", now=1)
    with pytest.raises(ResourceExhaustedError):
        known.reserve("b", now=RESERVED_SECONDS)
    known.reserve("b", now=RESERVED_SECONDS + 2)
    assert known.counts() == {"node a": 0, "node b": 1}


def test_an_end_is_remembered_and_counts_no_sessions() -> None:
    known = directory()
    known.note("a", 3, [], now=1)
    known.end("a", "it crashed")
    known.note("a", 3, [], now=2)  # on its way when the host ended
    known.end("never", "never was")
    assert (known.ending_of("a"), known.ending_of("b")) == ("it crashed", None)
    assert known.ending_of("never") is None
    assert known.counts() == {"node b": 0}
    assert known.on_node("node a") is None


def test_the_oldest_ends_are_forgotten() -> None:
    known = Directory(1)
    for i in range(MAX_ENDED + 1):
        known.add(HostRecord(str(i), "node", "address", used_at=0))
        known.end(str(i), "ended")
    assert (known.ending_of("0"), known.ending_of("1")) == (None, "ended")


def test_a_host_without_sessions_is_idle() -> None:
    known = directory()
    known.note("a", 1, [], now=1)
    assert [each.id for each in known.idle(since=5)] == ["b"]
    known.note("a", 0, [], now=9)
    assert [each.id for each in known.idle(since=5)] == ["b"]
    assert [each.id for each in known.idle(since=10)] == ["a", "b"]
    known.forget("a")
    assert known.ending_of("a") is None


def test_hosts_that_ended_while_the_directory_was_away() -> None:
    before = directory()
    before.end("a", "it crashed")
    before.add(HostRecord("c", "node c", "address c", used_at=0))
    after = Directory(3)
    after.add(HostRecord("c", "node c", "address c", used_at=0))  # it was found again
    after.restore(before.kept())
    assert after.ending_of("a") == "it crashed"
    assert after.ending_of("b") == "node address b: it ended while the directory was away"
    assert after.ending_of("c") is None
