import json

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from runtime.foundation.errors import Code, InternalError, UnavailableError, error_for_code
from server.errors import (
    HTTP_STATUS,
    BodyTooLargeError,
    as_op_error,
    error_response,
    http_status,
)
from server.sessions.session_errors import SessionGoneError, TooManySessionsError

SCOPE = {"path": "/v1/sessions", "request_id": "r1"}


def test_every_code_has_a_status():
    assert set(HTTP_STATUS) == set(Code)


# google/rpc/code.proto, and 499 as nginx and TensorFlow Serving have it.
@pytest.mark.parametrize(
    ("code", "status"),
    [(1, 499), (2, 500), (3, 400), (4, 504), (5, 404), (6, 409), (7, 403), (8, 429), (9, 400),
     (10, 409), (11, 400), (12, 501), (13, 500), (14, 503), (15, 500), (16, 401)],
)  # fmt: skip
def test_codes_become_statuses(code, status):
    assert http_status(error_for_code(code, "text")) == status


def test_some_errors_say_more_than_their_code():
    assert http_status(SessionGoneError("gone")) == 410
    assert http_status(BodyTooLargeError("large")) == 413


def test_bodies_have_message_code_and_request_id():
    response = error_response(InternalError("broken", node="x"), SCOPE)
    assert json.loads(response.body) == {
        "error": "broken\n\t [[{{node x}}]]",
        "code": "INTERNAL",
        "request_id": "r1",
    }


def test_bodies_of_v2_have_the_message_alone():
    response = error_response(InternalError("broken"), SCOPE | {"path": "/v2/models/m"})
    assert json.loads(response.body) == {"error": "broken"}


@pytest.mark.parametrize(
    ("error", "seconds"),
    [(UnavailableError("loading"), "1"), (TooManySessionsError("full", 6.2), "7"),
     (TooManySessionsError("full", -3.0), "1"),  # a lease that has expired
     (InternalError("broken"), None)],
)  # fmt: skip
def test_what_may_be_tried_again_says_when(error, seconds):
    assert error_response(error, SCOPE).headers.get("retry-after") == seconds


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (HTTPException(404), Code.NOT_FOUND, "No such path"),
        (HTTPException(405, headers={"Allow": "POST"}), Code.UNIMPLEMENTED, "takes POST"),
        (HTTPException(400, "bad"), Code.INVALID_ARGUMENT, "bad"),
        (ClientDisconnect(), Code.CANCELLED, "The client went away."),
    ],
)
def test_the_router_s_errors_are_ours_too(error, code, text):
    translated = as_op_error(error)
    assert translated.code is code and text in translated.message


def test_unexpected_errors_are_logged_and_not_shown(caplog):
    translated = as_op_error(ZeroDivisionError("secret"))
    assert translated.message == "Internal error (ZeroDivisionError); see the server's log"
    assert "secret" in caplog.text
