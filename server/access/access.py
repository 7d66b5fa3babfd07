"""Access: identifies callers, and decides whether their requests are admitted.

Each transport makes one call for each request, and gets the Caller. What a caller may do with a
session or a step is then decided by `Caller`, where the session or the step is known.

Guarantees: used from the event loop only, except `read`, which any thread may call. Nothing is
decided by the address of the other end, because a proxy makes all addresses its own. Without
authentication, an HTTP request costs two comparisons.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from runtime.errors import UnauthenticatedError
from server.access.bearer_tokens import BearerTokens, Claims
from server.access.caller import Caller, Role
from server.access.credentials import NOTHING, Credentials, read_credentials
from server.access.disclosure import redactor
from server.access.http_rules import Need, need_of, session_in
from server.access.keys_file import Owner, Owners, key_digest, read_owners
from server.access.limits import NO_LIMITS, Limits, Usage
from server.access.web_origins import WebOrigins
from server.settings import Settings

_MAX_TOKENS = 4096  # verified bearer tokens that are remembered
_MAX_USAGES = 10_000  # owners with limits; those that run no step are forgotten first
_OPEN_ROLES = frozenset({Role.PREDICT, Role.SESSIONS})
_REQUIRED = "This server requires an API key, a bearer token or a client certificate"
# Finds the owner of a session by its id; None if there is no such session.
OwnerOf = Callable[[str], str | None]


class Knowledge(NamedTuple):
    """What the configured files say."""

    owners: Owners
    tokens: BearerTokens | None


class Access:
    """The callers of one server."""

    def __init__(
        self,
        settings: Settings,
        owner_of: OwnerOf,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Read the files; raise InvalidArgumentError if one is wrong."""
        self._settings = settings
        self._owner_of = owner_of
        self._clock = clock
        self._wall_clock = wall_clock
        self.is_required = settings.is_authenticated
        bringers = settings.graph_bringers
        self._origins = WebOrigins(settings.rest.host, settings.access.hosts)
        self._known_hosts = self._origins.known_hosts
        self._checks_host = self._origins.is_local and not self.is_required
        self._is_cors = settings.rest.cors
        self._is_open = not self.is_required and bringers == "anyone"
        self._authenticated_bring = bringers != "none"
        self._redact = redactor(_server_paths(settings))
        self._anonymous = Caller(
            roles=frozenset(map(Role, settings.access.anonymous_roles))
            if self.is_required
            else _OPEN_ROLES,
            may_bring_graphs=bringers == "anyone",
            redact=self._redact,
        )
        self._usages: dict[str, Usage] = {}
        self._by_key: dict[bytes, Caller] = {}
        self._by_token: dict[bytes, tuple[float, Caller]] = {}  # with the instant of expiry
        self._knowledge = Knowledge(Owners(), None)
        self.use(self.read())

    # --- files --------------------------------------------------------------------------------

    def files(self) -> list[str]:
        """Return the files that `read` reads."""
        access = self._settings.access
        return [path for path in (access.keys_file, access.jwt.key_file) if path is not None]

    def read(self) -> Knowledge:
        """Read the configured files again; raise InvalidArgumentError if one is wrong."""
        settings = self._settings
        pools = [pool.name for pool in settings.thread_pools]
        keys_file, jwt = settings.access.keys_file, settings.access.jwt
        return Knowledge(
            Owners() if keys_file is None else read_owners(
                Path(keys_file), settings.priorities, pools
            ),
            None if jwt.key_file is None else BearerTokens(jwt),
        )  # fmt: skip

    def use(self, knowledge: Knowledge) -> None:
        """Decide by this knowledge from now on; what was admitted before goes on."""
        self._knowledge = knowledge
        self._by_key.clear()
        self._by_token.clear()
        for name, usage in self._usages.items():
            owner = knowledge.owners.by_name.get(name)
            limits = knowledge.owners.limits if owner is None else owner.limits
            if limits != usage.limits:
                usage.set_limits(limits)

    # --- requests -----------------------------------------------------------------------------

    def admit_http(
        self,
        method: str,
        path: str,
        headers: Mapping[bytes, bytes],
        certificate_names: tuple[str, ...] = (),
    ) -> Caller:
        """Return the caller of an HTTP request whose path is percent-decoded.

        Raises UnauthenticatedError if it is not known, PermissionDeniedError if it may not make
        this call or the request comes from a web page of another host, NotFoundError if the path
        has another owner's session, and LimitExceededError above a rate.
        """
        host = headers.get(b"host")
        if self._checks_host and host not in self._known_hosts:
            self._origins.check_host(host)
        if self._is_open:
            if b"origin" in headers:
                self._check_origin(method, path, headers)
            return self._anonymous
        need = need_of(method, path)
        if need is Need.NOTHING:
            return self._anonymous
        credentials = NOTHING
        if self.is_required:
            credentials = read_credentials(
                _text(headers, b"authorization"), _text(headers, b"x-api-key"), certificate_names
            )
        if b"origin" in headers and not credentials.is_explicit:
            self._check_origin(method, path, headers)
        caller = self.identify(credentials)
        _check_need(caller, need)
        session_id = session_in(path)
        if session_id is not None:
            self.check_session(caller, session_id)
        return caller

    def admit_rpc(
        self,
        metadata: Mapping[str, str],
        certificate_names: tuple[str, ...] = (),
        *,
        is_for_tensorflow: bool = False,
    ) -> Caller:
        """Return the caller of a gRPC call of the master service, whose sessions bring graphs.

        If the call came to the port for TensorFlow's clients and has no credentials, the caller is
        the owner of that port. Raises UnauthenticatedError, PermissionDeniedError and
        LimitExceededError, as `admit_http` does.
        """
        if self._is_open:
            return self._anonymous
        credentials = NOTHING
        if self.is_required:
            credentials = read_credentials(
                metadata.get("authorization"), metadata.get("x-api-key"), certificate_names
            )
        if self.is_required and is_for_tensorflow and credentials is NOTHING:
            caller = self._tensorflow_clients()
            if caller.usage is not None:
                caller.usage.begin_request()
        else:
            caller = self.identify(credentials)
        _check_need(caller, Need.GRAPHS)
        return caller

    def plain_caller(self, headers: Mapping[bytes, bytes]) -> Caller | None:
        """Return the caller of a request without `Origin`, or None if that requires more checks.

        It is then anyone, who may run models and the sessions whose ids it has.
        """
        if not self._is_open or (
            self._checks_host and headers.get(b"host") not in self._known_hosts
        ):
            return None
        return self._anonymous

    def check_session(self, caller: Caller, session_id: str) -> None:
        """Raise NotFoundError if a session is another owner's, which the caller may not use."""
        owner = self._owner_of(session_id)
        if owner is not None:
            caller.check_session(session_id, owner)

    # --- callers ------------------------------------------------------------------------------

    def identify(self, credentials: Credentials) -> Caller:
        """Return the caller with these credentials, and count a request of it.

        Raises UnauthenticatedError if they are unknown or missing, and LimitExceededError.
        """
        if not self.is_required:
            return self._anonymous
        if credentials.token is not None:
            caller = self._with_token(credentials.token)
        else:
            caller = self._with_certificate(credentials.certificate_names)
        if caller.usage is not None:
            caller.usage.begin_request()
        return caller

    def _with_token(self, token: str) -> Caller:
        digest = key_digest(token)
        caller = self._by_key.get(digest)
        if caller is not None:
            return caller
        owner = self._knowledge.owners.by_key.get(digest)
        if owner is not None:
            caller = self._by_key[digest] = self._caller_of(owner)
            return caller
        if self._knowledge.tokens is None:
            raise UnauthenticatedError("The API key is unknown")
        verified = self._by_token.get(digest)
        if verified is not None and self._wall_clock() < verified[0]:
            return verified[1]
        claims = self._knowledge.tokens.verify(token)
        caller = self._caller_with(claims)
        if len(self._by_token) >= _MAX_TOKENS:
            self._by_token.clear()
        self._by_token[digest] = (claims.expires_at, caller)
        return caller

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
            raise UnauthenticatedError(_REQUIRED)
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

    def _tensorflow_clients(self) -> Caller:
        name = self._settings.grpc.tensorflow_owner
        known = self._knowledge.owners.by_name.get(name)
        if known is None:
            return self._caller(name, frozenset({Role.SESSIONS}), self._knowledge.owners.limits)
        return self._caller_of(known)

    def _usage(self, owner: str, limits: Limits) -> Usage:
        """Return the usage of an owner, which all its callers share."""
        usage = self._usages.get(owner)
        if usage is None:
            if len(self._usages) >= _MAX_USAGES:
                self._usages = {
                    name: each for name, each in self._usages.items() if each.running_steps
                }
            usage = self._usages[owner] = Usage(owner, limits, self._clock)
        return usage

    def _check_origin(self, method: str, path: str, headers: Mapping[bytes, bytes]) -> None:
        is_model = path.lower().startswith("/v1/models")
        if not (self._is_cors and is_model):  # the operator lets pages of any host call the models
            self._origins.check_origin(method, headers[b"origin"], headers.get(b"host"))


def _check_need(caller: Caller, need: Need) -> None:
    if need is Need.PREDICT:
        caller.check_role(Role.PREDICT)
    elif need in (Need.SESSIONS, Need.GRAPHS):
        caller.check_role(Role.SESSIONS)
        if need is Need.GRAPHS:
            caller.check_may_bring_graphs()


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")


def _server_paths(settings: Settings) -> list[str]:
    """Return the folders and files whose paths clients must not see.

    Those of `sessions.allowed_paths` are not among them, because clients need them.
    """
    access, tls = settings.access, settings.tls
    package = Path(__file__).resolve().parents[2]
    files = (
        settings.model_config_file, access.keys_file, access.jwt.key_file,
        tls.certificate_file, tls.key_file, tls.client_ca_file,
    )  # fmt: skip
    return [
        str(Path.cwd()),
        str(package),
        *(model.base_path for model in settings.models),
        *(str(Path(file).absolute()) for file in files if file is not None),
    ]
