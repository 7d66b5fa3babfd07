import base64

import pytest

from runtime.errors import UnauthenticatedError
from server.access.credentials import MAX_TOKEN_CHARACTERS, NOTHING, Credentials, read_credentials


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("authorization", "api_key", "expected"),
    [
        (None, None, NOTHING),
        ("Bearer abc", None, Credentials("abc", is_explicit=True)),
        ("bearer   abc ", None, Credentials("abc", is_explicit=True)),
        (None, "abc", Credentials("abc", is_explicit=True)),
        # Browsers add passwords to requests of any page.
        (basic("name:a:b"), None, Credentials("a:b", is_explicit=False)),
        (basic(":abc"), None, Credentials("abc", is_explicit=False)),
    ],
)
def test_headers_give_a_token(authorization, api_key, expected):
    assert read_credentials(authorization, api_key) == expected


@pytest.mark.parametrize(
    ("authorization", "api_key"),
    [
        ("Bearer", None), ("Bearer ", None), ("abc", None), ("", None), ("Digest abc", None),
        ("Basic abc", None), ("Basic é", None), (basic("abc"), None), (None, ""),
        ("Bearer " + "a" * (MAX_TOKEN_CHARACTERS + 1), None),
    ],
)  # fmt: skip
def test_other_forms_are_refused_and_not_repeated(authorization, api_key):
    with pytest.raises(UnauthenticatedError, match="have a wrong form; expected") as error:
        read_credentials(authorization, api_key)
    assert "abc" not in error.value.message


def test_two_headers_are_refused():
    with pytest.raises(UnauthenticatedError, match="both given"):
        read_credentials("Bearer abc", "abc")


def test_a_certificate_alone_is_not_explicit():
    assert read_credentials(None, None, ("a",)) == Credentials(None, ("a",), is_explicit=False)
    assert read_credentials("Bearer abc", None, ("a",)) == Credentials("abc", ("a",), True)
