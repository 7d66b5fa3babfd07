"""KnownCallers: who has which key, token or certificate, and what its steps use.

Guarantees: used from the event loop only. A header, key or token that was found is remembered until
it expires, or until other knowledge is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256 as _sha256
from pathlib import Path
from typing import NamedTuple

from runtime.errors import UnauthenticatedError
from server.access.bearer_tokens import BearerTokens, Claims
from server.access.caller import Caller, Role
from server.access.credentials import Credentials
from server.access.disclosure import Redactor
from server.access.keys_file import Owner, Owners, key_digest, read_owners
from server.access.limits import NO_LIMITS, Limits, Usage
from server.access.owner_cells import OwnerCells
from server.settings import Settings

MAX_REMEMBERED = 4096  # entries of each of the tables that save time
_MAX_USAGES = 10_000  # owners with limits; those that run no step are forgotten first
REQUIRED = "This server requires an API key, a bearer token or a client certificate"


class Knowledge(NamedTuple):
    """What the configured files say."""

    owners: Owners
    tokens: BearerTokens | None


def read_knowledge(settings: Settings) -> Knowledge:
    """Read the configured files; raise InvalidArgumentError if one is wrong."""
    pools = [pool.name for pool in settings.thread_pools]
    keys_file, jwt = settings.access.keys_file, settings.access.jwt
    return Knowledge(
        Owners() if keys_file is None else read_owners(Path(keys_file), settings.priorities, pools),
        None if jwt.key_file is None else BearerTokens(jwt),
    )


class KnownCallers:
    """The callers that have shown who they are; `anonymous` is any other."""

    def __init__(
        self,
        settings: Settings,
        anonymous: Caller,
        redact: Redactor,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        cells: OwnerCells,
    ) -> None:
        self._anonymous = anonymous
        self._redact = redact
        self._clock = clock
        self._wall_clock = wall_clock
        self._cells = cells
        self._is_required = settings.is_authenticated
        self._authenticated_bring = settings.graph_bringers != "none"
        self._tensorflow_owner = settings.grpc.tensorflow_owner
        self._knowledge = Knowledge(Owners(), None)
        self._usages: dict[str, Usage] = {}
        # Callers, with the wall time at which they expire, by the digest of their key or token, and
        # by the digest of the whole header.
        self._by_token: dict[bytes, tuple[float, Caller]] = {}
        self._by_header: dict[bytes, tuple[float, Caller]] = {}

    def use(self, knowledge: Knowledge) -> None:
        """Decide by this knowledge from now on; what was admitted before goes on."""
        self._knowledge = knowledge
        self._by_token.clear()
        self._by_header.clear()
        for name, usage in self._usages.items():
            owner = knowledge.owners.by_name.get(name)
            limits = knowledge.owners.limits if owner is None else owner.limits
            if limits != usage.limits:
                usage.set_limits(limits)

    def remembered(self, headers: Mapping[bytes, bytes]) -> Caller | None:
        """Return the caller if a request with the same Authorization header was admitted lately."""
        value = headers.get(b"authorization")
        if value is None or b"origin" in headers or b"x-api-key" in headers:
            return None
        found = self._by_header.get(_sha256(value).digest())
        if found is None or self._wall_clock() >= found[0]:
            return None
        return found[1]

    def identify(self, credentials: Credentials, header: bytes | None = None) -> Caller:
        """Return the caller with these credentials.

        If they are from `header`, the same header will be remembered. Raises UnauthenticatedError
        if they are unknown or missing.
        """
        if not self._is_required:
            return self._anonymous
        if credentials.token is not None:
            expires_at, caller = self.with_token(credentials.token)
            if header is not None:
                if len(self._by_header) >= MAX_REMEMBERED:
                    self._by_header.clear()
                self._by_header[_sha256(header).digest()] = expires_at, caller
        else:
            caller = self._with_certificate(credentials.certificate_names)
        return caller

    def with_token(self, token: str) -> tuple[float, Caller]:
        """Return the caller with a key or a bearer token, and the instant at which it expires."""
        digest = key_digest(token)
        known = self._by_token.get(digest)
        if known is not None and self._wall_clock() < known[0]:
            return known
        owner = self._knowledge.owners.by_key.get(digest)
        if owner is not None:
            found = math.inf, self._caller_of(owner)
        elif self._knowledge.tokens is None:
            raise UnauthenticatedError("The API key is unknown")
        else:
            claims = self._knowledge.tokens.verify(token)
            found = claims.expires_at, self._caller_with(claims)
        if len(self._by_token) >= MAX_REMEMBERED:
            self._by_token.clear()
        self._by_token[digest] = found
        return found

    def tensorflow_clients(self) -> Caller:
        """Return the caller of calls without credentials on the port for TensorFlow's clients."""
        name = self._tensorflow_owner
        known = self._knowledge.owners.by_name.get(name)
        if known is None:
            return self._caller(name, frozenset({Role.SESSIONS}), self._knowledge.owners.limits)
        return self._caller_of(known)

    def _with_certificate(self, names: Iterable[str]) -> Caller:
        known = self._knowledge.owners.by_certificate
        owners = {owner.name: owner for name in names if (owner := known.get(name)) is not None}
        if len(owners) > 1:
            raise UnauthenticatedError(
                f"The client certificate has names of several owners: {', '.join(sorted(owners))}"
            )
        if owners:
            return self._caller_of(*owners.values())
        if not self._anonymous.roles:
            raise UnauthenticatedError(REQUIRED)
        return self._anonymous

    def _caller_with(self, claims: Claims) -> Caller:
        owners = self._knowledge.owners
        known = owners.by_name.get(claims.owner)
        limits = owners.limits if known is None else known.limits
        roles = claims.roles
        if roles is None:
            roles = frozenset() if known is None else known.roles
        return self._caller(claims.owner, roles, limits)

    def _caller_of(self, owner: Owner) -> Caller:
        return self._caller(owner.name, owner.roles, owner.limits)

    def _caller(self, owner: str, roles: frozenset[Role], limits: Limits) -> Caller:
        return Caller(
            owner,
            roles,
            is_authenticated=True,
            may_bring_graphs=self._authenticated_bring,
            usage=None if limits == NO_LIMITS else self._usage(owner, limits),
            redact=self._redact,
        )

    def _usage(self, owner: str, limits: Limits) -> Usage:
        """Return the usage of an owner, which all its callers share."""
        usage = self._usages.get(owner)
        if usage is None:
            if len(self._usages) >= _MAX_USAGES:
                self._usages = {
                    name: each for name, each in self._usages.items() if each.running_steps
                }
            usage = self._usages[owner] = Usage(owner, limits, self._clock, self._cells)
        return usage
