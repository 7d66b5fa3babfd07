import pytest

from runtime.errors import AbortedError, InvalidArgumentError, NotFoundError, UnauthenticatedError
from server.access.access_errors import (
    DeniedError,
    ForeignSessionError,
    LimitExceededError,
    refusal_of,
)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (DeniedError("no", "role"), "role"),
        (LimitExceededError("full", "sessions", 1.0), "sessions"),
        (UnauthenticatedError("who?"), "unauthenticated"),
        (ForeignSessionError("none"), "owner"),
        (NotFoundError("none"), None),
        (InvalidArgumentError("wrong"), None),
        (None, None),
    ],
)
def test_refusals_have_a_reason(error, reason):
    assert refusal_of(error) == reason


def test_an_error_in_place_of_a_refusal_has_its_reason():
    try:
        raise AbortedError("gone") from ForeignSessionError("none")
    except AbortedError as error:
        assert refusal_of(error) == "owner"
