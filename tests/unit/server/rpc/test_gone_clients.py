"""gRPC clients that go away before their response leave no error in the log."""

from __future__ import annotations

import asyncio
import logging

import grpc
import pytest

from server.rpc.gone_clients import quiet_gone_clients
from tests.integration.test_grpc_limits import channel

GRPC_LOG = logging.getLogger("grpc._cython.cygrpc")


async def open_and_close() -> None:
    async with channel():
        pass


def test_a_response_to_a_client_that_has_gone_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asyncio.run(open_and_close())  # the server quiets them
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="server.rpc"):
        # As gRPC logs it: server.pyx.pxi, _handle_exceptions.
        GRPC_LOG.exception("ExecuteBatchError raised in core by servicer method [%s]", b"/RunStep")
    ((logger, level, text),) = caplog.record_tuples
    assert (logger, level) == ("server.rpc.gone_clients", logging.DEBUG)
    assert text == "A client has gone before its response: by servicer method [b'/RunStep']"


def test_other_errors_of_grpc_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    quiet_gone_clients()
    quiet_gone_clients()
    GRPC_LOG.error("Unexpected [%s] raised", "KeyError")
    assert [text for _, _, text in caplog.record_tuples] == ["Unexpected [KeyError] raised"]


def test_the_errors_come_from_the_module_that_is_quieted() -> None:
    assert grpc.aio.InternalError.__module__ == GRPC_LOG.name
