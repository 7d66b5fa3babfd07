"""Counts of sessions by kind."""

from __future__ import annotations

from runtime.api import SessionOptions, new_session, session_counts
from tests.unit.runtime.sessions.graphs import direct_session


def test_sessions_are_counted_from_their_making_to_their_close() -> None:
    new_session(SessionOptions("http://localhost:1")).close()  # there may have been none
    created, living = session_counts.created(), session_counts.open()
    first, second = direct_session(), direct_session()
    first.close()
    first.destroy()
    kind = "DIRECT_SESSION"
    assert session_counts.created()[kind] == created.get(kind, 0) + 2
    assert session_counts.open()[kind] == living.get(kind, 0) + 1
    second.close()
    remote = new_session(SessionOptions("http://localhost:1"))
    remote.close()
    assert session_counts.created()["HTTP_SESSION"] == created.get("HTTP_SESSION", 0) + 1
    assert session_counts.open()["HTTP_SESSION"] == living.get("HTTP_SESSION", 0)
