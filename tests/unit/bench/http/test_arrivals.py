"""Requests at random times: when they are due, and what their time counts from."""

from __future__ import annotations

import pytest

from bench.http.arrivals import arrivals, load
from tests.unit.bench.http.test_load import BODY, answer, server


def test_arrivals_are_random_but_the_same_in_every_run() -> None:
    due = list(arrivals(100, 10))
    assert due == list(arrivals(100, 10)) == sorted(due)
    assert due != list(arrivals(100, 10, seed=2))
    assert due[0] > 0
    assert len(due) == pytest.approx(1000, rel=0.2)


def test_every_request_that_was_due_is_answered() -> None:
    with server([answer("200 OK", b"[1.0]")]) as address:
        times = load(address, "/", BODY, 200, 0.1, connections=1)
    assert len(times) == len(list(arrivals(200, 0.1)))
    assert all(0 < each < 10 for each in times)


def test_an_error_ends_the_run() -> None:
    good, bad = answer("200 OK", b"[1.0]"), answer("503 Busy", b"[1.0]")
    with server([good, bad]) as address, pytest.raises(RuntimeError, match="503 Busy"):
        load(address, "/", BODY, 100, 1)
