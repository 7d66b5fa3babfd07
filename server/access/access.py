"""Access: identifies callers, and decides whether their requests are admitted.

Each transport makes one call for each request, and gets the Caller. What a caller may do with a
session or a step is then decided by `Caller`, where the session or the step is known.

Guarantees: used from the event loop only, except `read`, which any thread may call. Nothing is
decided by the address of the other end, because a proxy makes all addresses its own. Without
authentication, an HTTP request costs two comparisons.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from runtime.errors import OpError, UnauthenticatedError
from server.access.access_errors import LimitExceededError, refusal_of
from server.access.caller import Caller, Role
from server.access.console_logins import FAILURE_SECONDS, ConsoleLogins
from server.access.credentials import NOTHING, Credentials, read_credentials
from server.access.disclosure import Redactor
from server.access.http_rules import Need, need_of, session_in
from server.access.known_callers import (
    MAX_REMEMBERED,
    REQUIRED,
    Knowledge,
    KnownCallers,
    read_knowledge,
)
from server.access.owner_cells import OF_ONE_PROCESS, OwnerCells
from server.access.rpc_rules import rpc_need_of
from server.access.web_origins import WebOrigins
from server.settings import Settings

_ROLES = {Need.PREDICT: Role.PREDICT, Need.SESSIONS: Role.SESSIONS, Need.GRAPHS: Role.SESSIONS}
_OPEN_ROLES = frozenset({Role.PREDICT, Role.SESSIONS})
# Finds the owner of a session by its id; None if there is no such session.
OwnerOf = Callable[[str], str | None]


class _Requirement(NamedTuple):
    """What one HTTP call requires, and the session id in its path."""

    need: Need
    role: Role | None
    session_id: str | None


class Access:
    """The callers of one server."""

    def __init__(
        self,
        settings: Settings,
        owner_of: OwnerOf,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        model_folders: Callable[[], Iterable[str]] = tuple,
        cells: OwnerCells = OF_ONE_PROCESS,
    ) -> None:
        """Read the files; raise InvalidArgumentError if one is wrong.

        `model_folders` returns the folders of the models that are configured at the time. `cells`
        has what owners use.
        `refusals` has the number of refused requests by front ("rest" or "grpc") and reason.
        """
        self.refusals: collections.Counter[tuple[str, str]] = collections.Counter()
        self._settings = settings
        self._owner_of = owner_of
        self.is_required = settings.is_authenticated
        bringers = settings.graph_bringers
        self._origins = WebOrigins(settings.rest.host, settings.access.hosts)
        self._known_hosts = self._origins.known_hosts
        self._checks_host = self._origins.is_local and not self.is_required
        self._is_cors = settings.rest.cors
        self._is_open = not self.is_required and bringers == "anyone"
        self.redact = Redactor(
            _server_paths(settings), tuple if _all_administer(settings) else model_folders
        )
        self._anonymous = Caller(
            roles=frozenset(map(Role, settings.access.anonymous_roles))
            if self.is_required
            else _OPEN_ROLES,
            may_bring_graphs=bringers == "anyone",
            redact=self.redact,
        )
        self._plain_caller = None if self.is_required else self._anonymous
        self.console_logins = ConsoleLogins(clock)
        self._callers = KnownCallers(
            settings, self._anonymous, self.redact, clock, wall_clock, cells
        )
        self._remembered = self._callers.remembered
        self.use = self._callers.use
        self._requirements: dict[tuple[str, str], _Requirement] = {}
        self.use(self.read())

    # --- files --------------------------------------------------------------------------------

    def files(self) -> list[str]:
        """Return the files that `read` reads."""
        access = self._settings.access
        return [path for path in (access.keys_file, access.jwt.key_file) if path is not None]

    def read(self) -> Knowledge:
        """Read the configured files again; raise InvalidArgumentError if one is wrong."""
        return read_knowledge(self._settings)

    # --- requests -----------------------------------------------------------------------------

    def admit_http(
        self,
        method: str,
        path: str,
        headers: Mapping[bytes, bytes],
        certificate_names: tuple[str, ...] = (),
        *,
        is_new: bool = True,
    ) -> Caller:
        """Return the caller of an HTTP request whose path is percent-decoded.

        A request is not new if another process has admitted it, which has counted it too.

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
        known = self._requirements.get((method, path))
        need, role, session_id = known or self._requirement(method, path)
        if need is Need.NOTHING:
            return self._anonymous
        caller = self._remembered(headers) or self._identified(
            method, path, headers, certificate_names
        )
        if is_new and caller.usage is not None:
            caller.usage.begin_request()
        if role is not None and role not in caller.roles:
            caller.check_role(role)  # an admin has it too
        if need is Need.GRAPHS:
            caller.check_may_bring_graphs()
        if session_id is not None:
            self.check_session(caller, session_id)
        return caller

    def _requirement(self, method: str, path: str) -> _Requirement:
        """Return what a call requires, and remember it."""
        if len(self._requirements) >= MAX_REMEMBERED:
            self._requirements.clear()
        need = need_of(method, path)
        found = _Requirement(need, _ROLES.get(need), session_in(path))
        self._requirements[method, path] = found
        return found

    def _identified(
        self,
        method: str,
        path: str,
        headers: Mapping[bytes, bytes],
        certificate_names: tuple[str, ...],
    ) -> Caller:
        """Return the caller that the headers or the certificate name."""
        credentials = NOTHING
        if self.is_required:
            credentials = read_credentials(
                _text(headers, b"authorization"), _text(headers, b"x-api-key"), certificate_names
            )
            if credentials.token is None:
                token = self.console_logins.token_of(headers)
                if token is not None:
                    return self._callers.identify(Credentials(token, is_explicit=True))
        if b"origin" in headers and not credentials.is_explicit:
            self._check_origin(method, path, headers, has_credentials=credentials is not NOTHING)
        return self._callers.identify(credentials, headers.get(b"authorization"))

    def admit_rpc(
        self,
        path: str,
        metadata: Mapping[str, str],
        certificate_names: tuple[str, ...] = (),
        *,
        is_for_tensorflow: bool = False,
        is_new: bool = True,
    ) -> Caller:
        """Return the caller of a gRPC call; `path` is `/service/method`.

        A call is not new if another process has admitted it, which has counted it too.

        If the call came to the port for TensorFlow's clients and has no credentials, the caller is
        the owner of that port. Raises UnauthenticatedError, PermissionDeniedError and
        LimitExceededError, as `admit_http` does.
        """
        need = rpc_need_of(path)
        if self._is_open or need is Need.NOTHING:
            return self._anonymous
        credentials = NOTHING
        if self.is_required:
            credentials = read_credentials(
                metadata.get("authorization"), metadata.get("x-api-key"), certificate_names
            )
        if self.is_required and is_for_tensorflow and credentials is NOTHING:
            caller = self._callers.tensorflow_clients()
        else:
            caller = self._callers.identify(credentials)
        if is_new and caller.usage is not None:
            caller.usage.begin_request()
        role = _ROLES.get(need)
        if role is not None:
            caller.check_role(role)
        if need is Need.GRAPHS:
            caller.check_may_bring_graphs()
        return caller

    def log_in(self, token: str) -> str:
        """Return the id of a login of the console with an API key or a bearer token.

        Raises UnauthenticatedError if it is unknown, LimitExceededError after many such. The right
        one is always taken, so that nobody can lock others out; keys are too long to be guessed.
        """
        try:
            credentials = read_credentials(None, token)
            self._callers.with_token(credentials.token or "")
        except UnauthenticatedError:
            if not self.console_logins.allows_failure():
                raise LimitExceededError(
                    "Too many wrong credentials; try again later", "logins", FAILURE_SECONDS
                ) from None
            raise
        return self.console_logins.begin(token)

    def still_known(self, headers: Mapping[bytes, bytes]) -> Callable[[], bool]:
        """Return a function for answers without an end: whether the caller's credential is valid.

        It is for a request that has just been admitted. It counts no request, and does not prolong
        a login. The caller of a certificate, which is checked when it connects, remains known.
        """
        if not self.is_required:
            return lambda: True
        token = read_credentials(
            _text(headers, b"authorization"), _text(headers, b"x-api-key")
        ).token
        login_token = self.console_logins.token_of(headers) if token is None else None
        token = token or login_token

        def is_known() -> bool:
            if login_token is not None and not self.console_logins.stands(headers):
                return False
            try:
                return token is None or bool(self._callers.with_token(token))
            except UnauthenticatedError:
                return False

        return is_known

    def check_rpc_token(self, metadata: Mapping[str, str], path: str) -> None:
        """Raise UnauthenticatedError if a gRPC call without a certificate is of nobody known.

        Nothing is counted, so that this can be checked before the message is received.
        """
        if self.is_required and rpc_need_of(path) is not Need.NOTHING:
            credentials = read_credentials(metadata.get("authorization"), metadata.get("x-api-key"))
            if credentials.token is not None:
                self._callers.with_token(credentials.token)
            elif not self._anonymous.roles:
                raise UnauthenticatedError(REQUIRED)

    def plain_caller(self, headers: Mapping[bytes, bytes]) -> Caller | None:
        """Return the caller of a request without `Origin`, or None if that requires more checks.

        It is then anyone, who may run models and the sessions whose ids it has.
        """
        if self._checks_host and headers.get(b"host") not in self._known_hosts:
            return None
        return self._plain_caller

    def check_session(self, caller: Caller, session_id: str) -> None:
        """Raise NotFoundError if a session is another owner's, which the caller may not use."""
        owner = self._owner_of(session_id)
        if owner is not None:
            caller.check_session(session_id, owner)

    def count_refusal(self, front: str, error: OpError) -> None:
        """Count a request of a front that ends with an error, if it was refused."""
        reason = refusal_of(error)
        if reason is not None:
            self.refusals[front, reason] += 1

    def _check_origin(
        self,
        method: str,
        path: str,
        headers: Mapping[bytes, bytes],
        *,
        has_credentials: bool = False,
    ) -> None:
        is_model = path.lower().startswith("/v1/models")
        if not (self._is_cors and is_model):  # the operator lets pages of any host call the models
            self._origins.check_origin(
                method, headers[b"origin"], headers.get(b"host"), has_credentials=has_credentials
            )


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")


def _all_administer(settings: Settings) -> bool:
    return settings.admin.enabled and not settings.is_authenticated


def _server_paths(settings: Settings) -> list[str]:
    """Return the folders and files whose paths clients must not see.

    Those of `sessions.allowed_paths` are not among them, because clients need them; nor are those
    of `admin.model_folders` where everybody may administer.
    """
    access, tls, admin = settings.access, settings.tls, settings.admin
    package = Path(__file__).resolve().parents[2]
    files = (
        settings.model_config_file, access.keys_file, access.jwt.key_file,
        tls.certificate_file, tls.key_file, tls.client_ca_file,
        settings.grpc.ssl_config_file, settings.grpc.socket_path, settings.session_config_file,
    )  # fmt: skip
    return [
        str(Path.cwd()),
        str(package),
        *(model.base_path for model in settings.models),
        *settings.sessions.model_folders,
        *(() if _all_administer(settings) else admin.model_folders),
        *(str(Path(file).absolute()) for file in files if file is not None),
    ]
