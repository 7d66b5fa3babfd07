"""Verify bearer tokens that are JSON Web Tokens, with the configured key.

PyJWT (extra `auth`) does it. It is imported only if a key is configured.

Source: RFC 7519 (claims), RFC 8725 (only configured algorithms, keys of sufficient length)
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from runtime.errors import FailedPreconditionError, InvalidArgumentError, UnauthenticatedError
from server.access.caller import Role
from server.access.keys_file import OWNER_NAME
from server.settings_sections.access import JwtSettings

# RFC 7518 §3.2: a secret must be as long as the hash.
_SECRET_BYTES = {"HS256": 32, "HS384": 48, "HS512": 64}
LEEWAY_SECONDS = 30  # by which the clocks of issuer and server may differ


@dataclasses.dataclass(frozen=True, slots=True)
class Claims:
    """What a verified token says; `roles` is None if the token does not have the claim."""

    owner: str
    roles: frozenset[Role] | None
    expires_at: float  # wall time, leeway included


class BearerTokens:
    """Verifies the tokens of one issuer."""

    def __init__(self, settings: JwtSettings) -> None:
        """Read the key; raise InvalidArgumentError if it does not fit the algorithms."""
        if settings.key_file is None:
            raise InvalidArgumentError("access.jwt.key_file is not set")
        try:
            import jwt
        except ImportError:
            raise FailedPreconditionError(
                "access.jwt requires PyJWT: pip install 'runstep[auth]'"
            ) from None
        self._jwt = jwt
        self._settings = settings
        self._key = _read_key(jwt, Path(settings.key_file), settings.algorithms)
        self._options: Any = {"require": ["exp", settings.owner_claim]}

    def verify(self, token: str) -> Claims:
        """Return the claims of a token; raise UnauthenticatedError that says what is wrong."""
        settings = self._settings
        try:
            claims = self._jwt.decode(
                token,
                self._key,
                algorithms=list(settings.algorithms),
                audience=settings.audience,
                issuer=settings.issuer,
                leeway=LEEWAY_SECONDS,
                options=self._options,
            )
        except (self._jwt.InvalidTokenError, ValueError, TypeError, RecursionError) as error:
            # The texts of PyJWT name a claim or the fault; only the class is sure to quote nothing.
            raise UnauthenticatedError(f"The bearer token is refused: {_reason(error)}") from None
        owner = claims[settings.owner_claim]
        if not isinstance(owner, str) or not OWNER_NAME.match(owner):
            raise UnauthenticatedError(
                f"The claim {settings.owner_claim!r} of the bearer token is not a name"
            )
        expires_at = float(claims["exp"]) + LEEWAY_SECONDS
        return Claims(owner, _roles(claims.get(settings.roles_claim)), expires_at)


def _read_key(jwt: Any, path: Path, algorithms: tuple[str, ...]) -> Any:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidArgumentError(f"Cannot read {path}: {error.strerror}") from None
    is_secret = algorithms[0].startswith("HS")
    if is_secret:
        content = content.strip()
        least = max(_SECRET_BYTES[name] for name in algorithms)
        if len(content) < least:
            raise InvalidArgumentError(f"The secret in {path} must have at least {least} bytes")
    try:
        # Every algorithm must accept the key: an elliptic one, for example, refuses an RSA key.
        prepared = [jwt.PyJWS(list(algorithms)).get_algorithm_by_name(name).prepare_key(content)
                    for name in algorithms]  # fmt: skip
    except NotImplementedError:
        raise FailedPreconditionError(
            f"The algorithms {', '.join(algorithms)} require: pip install 'runstep[auth]'"
        ) from None
    except (jwt.InvalidKeyError, ValueError, TypeError):
        raise InvalidArgumentError(
            f"{path} is not a public key for {', '.join(algorithms)}"
        ) from None
    return content if is_secret else prepared[0]


def _roles(claim: object) -> frozenset[Role] | None:
    """Return the roles in a list, or in a text with spaces; those of other programs are ignored."""
    if claim is None:
        return None
    names = claim.split() if isinstance(claim, str) else claim
    if not isinstance(names, list):
        return frozenset()
    known = {role.value: role for role in Role}
    return frozenset(known[name] for name in names if isinstance(name, str) and name in known)


def _reason(error: Exception) -> str:
    """Return the class of an error as words, for example `expired signature`."""
    name = type(error).__name__.removesuffix("Error")
    return "".join(f" {each.lower()}" if each.isupper() else each for each in name).strip()
