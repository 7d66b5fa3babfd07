"""A target of sessions, and the errors that depend on it."""

from __future__ import annotations

import re
import secrets
from typing import Any

import pytest

import protos as pb
from runtime.api import OpError, RuntimeSession, SessionOptions, new_session
from tests.integration.targets.expectations import EXPECTED, FALLBACK

OPERATION_TIMEOUT_MS = 60_000  # nothing waits for ever, whatever breaks


class Target:
    """Makes sessions on `address`; `name` is its column in the table of expectations."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self._sessions: list[RuntimeSession] = []

    @property
    def is_remote(self) -> bool:
        """Whether what is fed and fetched crosses a wire."""
        return self.name != "direct"

    @property
    def is_master(self) -> bool:
        """Whether it is a master service, whose sessions share variables."""
        return self.name in ("grpc", "tensorflow")

    def session(self, graph: pb.GraphDef | None = None, **config: Any) -> RuntimeSession:
        """A session on the graph; closed when the test ends."""
        options = {"operation_timeout_in_ms": OPERATION_TIMEOUT_MS} | config
        session = new_session(SessionOptions(self.address, pb.ConfigProto(**options)))
        self._sessions.append(session)
        if graph is not None:
            session.create(graph)
        return session

    def raises(self, case: str) -> Any:
        """Expects the error of `case` on this target."""
        error, text = self.expected(case)
        texts = (text,) if isinstance(text, str) else text
        return pytest.raises(error, match="|".join(map(re.escape, texts)))

    def expected(self, case: str) -> tuple[type[OpError], str | tuple[str, ...]]:
        """The class and a part of the text of the error of `case`; of several, any may come."""
        row, column = EXPECTED[case], self.name
        while column not in row:
            column = FALLBACK[column]
        return row[column]

    def close(self) -> None:
        """Close what the test left open; that may fail after a reset."""
        for session in self._sessions:
            try:
                session.close()
            except OpError:
                continue


def fresh(what: str) -> str:
    """A name that no other test uses: sessions of a master share variables and queues."""
    return f"{what}_{secrets.token_hex(6)}"
