"""The future of a step of a gRPC session ends, whatever the server has answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import protos as pb
from runtime.api import InternalError, RunRequest, SessionOptions
from runtime.sessions.remote import grpc_session
from runtime.sessions.remote.grpc_session import GrpcSession


class Answered:
    """A call that has been answered."""

    def add_done_callback(self, done: Callable[[Any], None]) -> None:
        done(self)

    def result(self) -> pb.RunStepResponse:
        return pb.RunStepResponse()


def test_an_answer_that_can_not_be_read_ends_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: Any) -> list[Any]:
        raise KeyError("a fault")

    session = GrpcSession(SessionOptions(target="grpc://127.0.0.1:1"))
    monkeypatch.setattr(session, "_handle", "one")
    monkeypatch.setattr(session._master, "start", lambda *_: Answered())
    monkeypatch.setattr(grpc_session, "fetched_values", fault)
    future = session.run_async(RunRequest({}, ["x"]))
    with pytest.raises(InternalError, match=r"^KeyError: 'a fault'$"):
        future.result(30)
    session._master.close()
