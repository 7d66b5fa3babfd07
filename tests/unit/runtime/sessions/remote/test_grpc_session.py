"""A gRPC session's steps end, whatever the server has answered; all its calls have one affinity."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
from typing import Any

import grpc
import pytest

import protos as pb
from runtime.api import InternalError, RunRequest, SessionOptions
from runtime.sessions.remote import grpc_session
from runtime.sessions.remote.grpc_session import GrpcMaster, GrpcSession
from runtime.sessions.remote.http_transport import AFFINITY


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


def test_all_calls_of_a_master_have_the_same_affinity() -> None:
    seen: list[str] = []

    def answer(_: bytes, context: grpc.ServicerContext) -> bytes:
        seen.append(str(dict(context.invocation_metadata())[AFFINITY]))
        return b""

    class Handler(grpc.GenericRpcHandler):
        def service(self, _: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(answer)

    server = grpc.server(futures.ThreadPoolExecutor(1), handlers=[Handler()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    masters = [GrpcMaster(f"grpc://127.0.0.1:{port}") for _ in range(2)]
    for master in masters:
        master.call("ListDevices", pb.ListDevicesRequest(), 30)
        master.result(master.start("RunStep", pb.RunStepRequest(), 30))
        master.close()
    server.stop(None).wait()
    first, again, second, *_ = seen
    assert first == again != second
