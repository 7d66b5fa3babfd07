"""A row begins when the steps of the row before have ended."""

from __future__ import annotations

import json

import pytest

from bench.http import priority


class Server:
    """Answers GET /v1/threadpools with the numbers of steps that run and wait, one pair a call."""

    def __init__(self, *seen: tuple[int, int]) -> None:
        self.seen = list(seen)
        self.calls = 0

    def __call__(self, address: str) -> Server:
        return self

    def get(self, path: str) -> bytes:
        assert path == "/v1/threadpools"
        self.calls += 1
        running, queued = self.seen.pop(0) if len(self.seen) > 1 else self.seen[0]
        idle = {"running": 0, "queued": 0}
        return json.dumps({"thread_pools": [idle, {"running": running, "queued": queued}]}).encode()


@pytest.mark.parametrize("steps", [(1, 0), (0, 2)])
def test_a_row_waits_for_the_steps_that_run_and_wait(
    monkeypatch: pytest.MonkeyPatch, steps: tuple[int, int]
) -> None:
    monkeypatch.setattr(priority, "IDLE_SECONDS", 0.1)
    server = Server(steps, (0, 0), steps, (0, 0))
    monkeypatch.setattr(priority, "Client", server)
    priority.wait_until_idle("http://server")
    assert server.seen == [(0, 0)]
    assert server.calls > 3


def test_steps_that_do_not_end_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priority, "ENDING_SECONDS", 0.1)
    monkeypatch.setattr(priority, "Client", Server((1, 0)))
    with pytest.raises(TimeoutError, match=r"0\.1 s after a row"):
        priority.wait_until_idle("http://server")
