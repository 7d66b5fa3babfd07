from __future__ import annotations

import grpc
import pytest

from runtime.api import Code, NotFoundError, error_for_code
from runtime.errors import ResourceExhaustedError
from server.rpc.call import RETRY_AFTER
from server.rpc.status import MAX_DETAILS_BYTES, error_of, status_of


@pytest.mark.parametrize("code", [code for code in Code if code])
def test_statuses_have_the_canonical_numbers(code: Code) -> None:
    status, details = status_of(error_for_code(code, "text"))
    assert (status.value[0], details) == (code, "text")


def test_long_messages_are_cut_to_fit_a_trailer() -> None:
    status, details = status_of(NotFoundError("ü" * MAX_DETAILS_BYTES))
    assert status is grpc.StatusCode.NOT_FOUND
    assert details == "ü" * (MAX_DETAILS_BYTES // 2)


@pytest.mark.parametrize(
    ("trailers", "seconds"),
    [([], 0), ([(RETRY_AFTER, "7")], 7), ([("other", "1"), (RETRY_AFTER, "900")], 900)],
)
def test_the_error_of_a_call_has_its_code_its_text_and_the_time_to_wait(
    trailers: list[tuple[str, str]], seconds: float
) -> None:
    error = error_of(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", trailers)
    assert type(error) is ResourceExhaustedError
    assert error.message == "full"
    assert error.retry_after_seconds == seconds
