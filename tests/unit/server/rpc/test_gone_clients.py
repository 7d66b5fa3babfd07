"""gRPC clients that go away before their response leave no error in the log."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import grpc
import pytest

from runtime.errors import DeadlineExceededError
from server.rpc.call import Method
from server.rpc.gone_clients import quiet_gone_clients
from server.rpc.master_service import MasterService
from tests.integration.test_grpc_limits import channel

RUN_STEP = "/tensorflow.MasterService/RunStep"


def test_a_response_to_a_client_that_has_gone_is_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def answer(*_: Any) -> Any:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:  # the client has gone; its step ends at this moment
                raise DeadlineExceededError("Timed out") from None
            finally:
                ended.set()

        methods = {"RunStep": Method(bytes, answer)}
        monkeypatch.setattr(MasterService, "methods", lambda self: methods)
        async with channel() as made:
            call = made.unary_unary(RUN_STEP)(b"")
            await begun.wait()
            call.cancel()
            await ended.wait()
            with pytest.raises(asyncio.CancelledError):
                await call

    with caplog.at_level(logging.DEBUG, logger="server.rpc"):
        asyncio.run(scenario())
    errors = [record for record in caplog.records if record.levelno > logging.INFO]
    assert errors == []
    assert "A client has gone before its response" in caplog.text


def test_other_errors_of_grpc_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    quiet_gone_clients()
    logging.getLogger("grpc._cython.cygrpc").error("Unexpected [%s] raised", "KeyError")
    assert "Unexpected [KeyError] raised" in caplog.text


def test_the_log_knows_the_module_of_grpc() -> None:
    assert grpc.aio.InternalError.__module__ == "grpc._cython.cygrpc"
