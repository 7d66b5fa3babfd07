"""Fixtures of the integration tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime.sessions.direct import short_step
from server.models import manager
from tests.integration.rest_server import Ways
from tests.unit.server.models.fakes import FakeShortStep


@pytest.fixture(scope="session", autouse=True)
def no_full_collections() -> Iterator[None]:
    """Leave out what a server does when a model is closed: it takes a second among all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manager, "model_was_closed", lambda: None)
        yield


@pytest.fixture(params=["application", "port"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test in both ways; on a port, each compiled step is taken for short."""
    way: str = request.param
    monkeypatch.setattr(Ways, "on_a_port", way == "port")
    if way == "port":
        monkeypatch.setattr(short_step, "INLINE_SECONDS", 1e9)
        monkeypatch.setattr(FakeShortStep, "is_short", True)
    return way
