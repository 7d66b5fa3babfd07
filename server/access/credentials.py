"""Credentials: what a request shows of who makes it, as the transport has read it."""

from __future__ import annotations

import base64
import dataclasses

from runtime.errors import UnauthenticatedError

_EXPECTED = "expected `Authorization: Bearer KEY`, `Authorization: Basic` or `X-API-Key: KEY`"
MAX_TOKEN_CHARACTERS = 8192  # a larger one is refused before it is hashed or parsed


@dataclasses.dataclass(frozen=True, slots=True)
class Credentials:
    """An API key or a bearer token, and the names in a verified client certificate.

    `is_explicit` is whether the client itself added the token. Browsers add certificates, and
    passwords that were entered once, to requests of any web page.
    """

    token: str | None = None
    certificate_names: tuple[str, ...] = ()
    is_explicit: bool = False


NOTHING = Credentials()


def read_credentials(
    authorization: str | None, api_key: str | None, certificate_names: tuple[str, ...] = ()
) -> Credentials:
    """Read the values of the headers Authorization and X-API-Key.

    With `Basic`, which URLs with a password give, the password is the key and the name is ignored.
    Raises UnauthenticatedError if a header has another form, or if both headers are given.
    """
    if authorization is None and api_key is None:
        return Credentials(certificate_names=certificate_names) if certificate_names else NOTHING
    if authorization is not None and api_key is not None:
        raise UnauthenticatedError("Authorization and X-API-Key are both given; give one")
    is_explicit = True
    if authorization is None:
        token = api_key or ""
    else:
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() == "basic":
            token, is_explicit = _password(token), False
        elif scheme.lower() != "bearer":
            token = ""
    if not token or len(token) > MAX_TOKEN_CHARACTERS:
        raise UnauthenticatedError(f"The credentials have a wrong form; {_EXPECTED}")
    return Credentials(token, certificate_names, is_explicit)


def _password(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except ValueError:  # not base64 (binascii.Error), not ASCII, or not UTF-8 inside
        return ""
