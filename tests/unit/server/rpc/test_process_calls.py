"""The error with which another process has answered a call."""

from __future__ import annotations

import grpc
import pytest

from runtime.errors import ResourceExhaustedError, UnknownError
from server.rpc.call import ANSWERED, RETRY_AFTER
from server.rpc.process_calls import passed_error


@pytest.mark.parametrize(
    ("trailers", "seconds"),
    [([], 0), ([(RETRY_AFTER, "7")], 7), ([(ANSWERED, "1"), (RETRY_AFTER, "900")], 900)],
)
def test_it_has_the_code_the_text_and_the_time_to_wait(
    trailers: list[tuple[str, str]], seconds: float
) -> None:
    metadata = grpc.aio.Metadata(*trailers)
    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    error = passed_error(grpc.aio.AioRpcError(code, grpc.aio.Metadata(), metadata, "full"))
    assert type(error) is ResourceExhaustedError
    assert error.message == "full"
    assert error.retry_after_seconds == seconds


def test_it_needs_no_trailers_and_no_text() -> None:
    error = passed_error(grpc.aio.AioRpcError(grpc.StatusCode.UNKNOWN, None, None))  # type: ignore[arg-type] # as gRPC does
    assert type(error) is UnknownError
    assert (error.message, error.retry_after_seconds) == ("", 0)
