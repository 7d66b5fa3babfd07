from __future__ import annotations

import grpc
import pytest

from runtime.api import Code, NotFoundError, error_for_code
from server.rpc.status import MAX_DETAILS_BYTES, status_of


@pytest.mark.parametrize("code", [code for code in Code if code])
def test_statuses_have_the_canonical_numbers(code: Code) -> None:
    status, details = status_of(error_for_code(code, "text"))
    assert (status.value[0], details) == (code, "text")


def test_long_messages_are_cut_to_fit_a_trailer() -> None:
    status, details = status_of(NotFoundError("ü" * MAX_DETAILS_BYTES))
    assert status is grpc.StatusCode.NOT_FOUND
    assert details == "ü" * (MAX_DETAILS_BYTES // 2)
