import hashlib
import os
import time

import pytest
import yaml

from runtime.errors import (
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from server.access import known_callers as module
from server.access.access import Access
from server.access.access_errors import LimitExceededError
from server.access.caller import Role
from server.access.console_logins import IDLE_SECONDS
from server.settings import Settings
from tests.unit.server.access.tokens import SECRET, token

STEP = "/tensorflow.MasterService/RunStep"
SESSIONS = {"a-session": "alice", "b-session": "bob", "open-session": ""}
OWNERS = {
    "alice": {"roles": ["predict", "sessions"], "certificates": ["alice.example"]},
    "bob": {"roles": ["sessions"]},
    "eve": {"roles": []},
    "root": {"roles": ["admin"]},
}


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def key(name):
    return {"authorization": f"Bearer {name}-key"}


def http(name, **more):
    headers = {**(key(name) if name else {}), **more}
    return {each.encode(): value.encode() for each, value in headers.items()}


def write(path, owners, **more):
    entries = {
        name: {"keys": [hashlib.sha256(f"{name}-key".encode()).hexdigest()], **entry}
        for name, entry in owners.items()
    }
    path.write_text(yaml.safe_dump({"owners": entries, **more}))


def with_keys(tmp_path, owners=OWNERS, clock=None, wall_clock=time.time, file=None, **settings):
    path = tmp_path / "keys.yaml"
    write(path, owners, **(file or {}))
    access = {"keys_file": str(path)} | settings.pop("access", {})
    return Access(Settings(access=access, **settings), SESSIONS.get, clock or Clock(), wall_clock)


def without(**settings):
    return Access(Settings(**settings), SESSIONS.get)


PREDICT = ("POST", "/v1/models/m:predict")
RUN = ("POST", "/v1/sessions/a-session:run")


# --- without authentication ---------------------------------------------------------------------


def test_without_authentication_everyone_is_nobody_in_particular():
    access = without()
    caller = access.admit_http(*PREDICT, http("alice"))
    assert (caller.owner, caller.is_authenticated, caller.may_bring_graphs) == ("", False, True)
    assert caller.roles == {Role.PREDICT, Role.SESSIONS}  # nobody is admin
    assert access.admit_rpc(STEP, {}) is caller
    assert access.admit_rpc(STEP, key("alice"), is_for_tensorflow=True) is caller
    assert access.plain_caller({})


def test_a_local_server_is_not_reached_by_another_name():
    access = without(rest={"host": "127.0.0.1"}, access={"hosts": ["box"]})
    for host in ("localhost:1", "127.0.0.1", "box:1"):
        assert access.admit_http("GET", "/healthz", http("", host=host)).owner == ""
        assert access.plain_caller(http("", host=host))
    for method, path in (("GET", "/v1/models"), PREDICT, ("GET", "/healthz")):
        with pytest.raises(PermissionDeniedError, match="bound to loopback"):
            access.admit_http(method, path, http("", host="evil.com"))
    assert not access.plain_caller(http("", host="evil.com"))
    assert not access.plain_caller({})


def test_pages_of_other_hosts_change_nothing():
    access = without()
    for call in (("POST", "/v1/sessions"), PREDICT, ("DELETE", "/v1/sessions/open-session")):
        with pytest.raises(PermissionDeniedError, match="A web page"):
            access.admit_http(*call, http("", host="10.0.0.5", origin="http://evil.com"))
        access.admit_http(*call, http("", host="10.0.0.5", origin="http://10.0.0.5"))


def test_with_cors_pages_of_any_host_call_the_models_only():
    access = without(rest={"cors": True})
    headers = http("", host="server", origin="http://page")
    access.admit_http(*PREDICT, headers)
    with pytest.raises(PermissionDeniedError, match="A web page"):
        access.admit_http("POST", "/v1/sessions", headers)


def test_nobody_may_bring_graphs():
    access = without(sessions={"graphs": "none"})
    assert not access.admit_http("POST", "/v1/sessions", {}).may_bring_graphs
    access.admit_http("POST", "/v1/sessions/open-session:run", {})
    for refused in (
        lambda: access.admit_http("POST", "/v1/sessions/open-session:extend", {}),
        lambda: access.admit_rpc(STEP, {}),
    ):
        with pytest.raises(PermissionDeniedError, match=r"sessions\.graphs"):
            refused()
    plain = access.plain_caller({})
    assert plain is not None and not plain.may_bring_graphs


# --- with keys ----------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [key("alice"), {"x-api-key": "alice-key"}])
def test_a_key_names_its_owner(tmp_path, headers):
    access = with_keys(tmp_path)
    caller = access.admit_http(*PREDICT, {k.encode(): v.encode() for k, v in headers.items()})
    assert (caller.owner, caller.is_authenticated) == ("alice", True)
    assert access.admit_rpc(STEP, headers).owner == "alice"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({}, "^This server requires an API key"),
        ({b"authorization": b"Bearer nobody-key"}, "^The API key is unknown$"),
        ({b"x-api-key": b""}, "wrong form"),
        ({b"authorization": b"\xff"}, "wrong form"),
    ],
)
def test_without_a_known_key_nothing_is_possible(tmp_path, headers, message):
    access = with_keys(tmp_path)
    for call in (PREDICT, RUN, ("GET", "/v1/models"), ("GET", "/v1/sessions"), ("POST", "/new")):
        with pytest.raises(UnauthenticatedError, match=message):
            access.admit_http(*call, headers)
    text = {name.decode(): value.decode("latin-1") for name, value in headers.items()}
    with pytest.raises(UnauthenticatedError, match=message):
        access.admit_rpc(STEP, text)
    assert not access.plain_caller(headers)
    assert access.admit_http("GET", "/readyz", headers).roles == frozenset()


@pytest.mark.parametrize(
    ("name", "call", "role"),
    [
        ("bob", PREDICT, "predict"),
        ("eve", ("GET", "/v1/sessions"), "sessions"),
        ("eve", ("POST", "/v1/sessions"), "sessions"),
    ],
)
def test_roles_are_required(tmp_path, name, call, role):
    with pytest.raises(PermissionDeniedError, match=f"requires the role {role}"):
        with_keys(tmp_path).admit_http(*call, http(name))


def test_any_key_reads_figures_and_models(tmp_path):
    access = with_keys(tmp_path)
    for path in ("/monitoring/prometheus/metrics", "/v1/threadpools", "/v1/models/m"):
        assert access.admit_http("GET", path, http("eve")).owner == "eve"


def test_sessions_are_their_owner_s(tmp_path):
    access = with_keys(tmp_path)
    access.admit_http(*RUN, http("alice"))
    for call in (
        RUN,
        ("DELETE", "/v1/sessions/a-session"),
        ("GET", "/v1/sessions/a-session/graph"),
    ):
        with pytest.raises(NotFoundError, match=r"^Session a-session is not found\.$"):
            access.admit_http(*call, http("bob"))
        access.admit_http(*call, http("root"))
    access.admit_http("GET", "/v1/sessions/unknown", http("bob"))  # which the service says itself


def test_grpc_requires_the_right_to_bring_graphs(tmp_path):
    access = with_keys(tmp_path)
    assert access.admit_rpc(STEP, key("bob")).owner == "bob"
    with pytest.raises(PermissionDeniedError, match="requires the role sessions"):
        access.admit_rpc(STEP, key("eve"))
    access = with_keys(tmp_path, sessions={"graphs": "none"})
    with pytest.raises(PermissionDeniedError, match=r"sessions\.graphs"):
        access.admit_rpc(STEP, key("bob"))


def test_with_keys_those_who_are_known_bring_graphs(tmp_path):
    access = with_keys(tmp_path, access={"anonymous_roles": ["predict", "sessions"]})
    assert access.admit_http("POST", "/v1/sessions", http("bob")).may_bring_graphs
    anonymous = access.admit_http("POST", "/v1/sessions", {})
    assert not anonymous.may_bring_graphs and not anonymous.is_authenticated
    with pytest.raises(NotFoundError):
        access.admit_http(*RUN, {})
    access.admit_http("POST", "/v1/sessions/open-session:run", {})
    with pytest.raises(UnauthenticatedError):  # a wrong key is not the same as none
        access.admit_http(*PREDICT, http("nobody"))


def test_the_port_for_tensorflow_has_an_owner(tmp_path):
    access = with_keys(tmp_path)
    caller = access.admit_rpc(STEP, {}, is_for_tensorflow=True)
    assert (caller.owner, caller.roles) == ("tensorflow", {Role.SESSIONS})
    assert caller.may_bring_graphs
    assert access.admit_rpc(STEP, key("bob"), is_for_tensorflow=True).owner == "bob"
    with pytest.raises(UnauthenticatedError):
        access.admit_rpc(STEP, key("nobody"), is_for_tensorflow=True)
    owners = {**OWNERS, "tensorflow": {"roles": [], "limits": {"requests_per_second": 1}}}
    with pytest.raises(PermissionDeniedError):
        with_keys(tmp_path, owners).admit_rpc(STEP, {}, is_for_tensorflow=True)
    owners["tensorflow"]["roles"] = ["sessions"]
    limited = with_keys(tmp_path, owners)
    limited.admit_rpc(STEP, {}, is_for_tensorflow=True)
    with pytest.raises(LimitExceededError):
        limited.admit_rpc(STEP, {}, is_for_tensorflow=True)


# --- certificates and web pages -----------------------------------------------------------------


def test_a_certificate_names_its_owner(tmp_path):
    access = with_keys(tmp_path, {**OWNERS, "bob": {"certificates": ["bob.example"]}})
    names = ("other", "alice.example")
    assert access.admit_http(*PREDICT, {}, names).owner == "alice"
    assert access.admit_rpc(STEP, {}, names).owner == "alice"
    assert access.admit_http(*RUN, http("root"), names).owner == "root"  # the key counts
    with pytest.raises(UnauthenticatedError, match="several owners: alice, bob"):
        access.admit_http(*PREDICT, {}, ("alice.example", "bob.example"))
    with pytest.raises(UnauthenticatedError, match="requires an API key"):
        access.admit_http(*PREDICT, {}, ("unknown",))
    with pytest.raises(UnauthenticatedError, match="is unknown"):
        access.admit_http(*PREDICT, http("nobody"), names)


def test_what_browsers_add_by_themselves_does_not_serve_other_pages(tmp_path):
    access = with_keys(tmp_path)
    origin = {"host": "server", "origin": "http://evil.com"}
    with pytest.raises(PermissionDeniedError, match="A web page"):
        access.admit_http(*PREDICT, http("", **origin), ("alice.example",))
    with pytest.raises(PermissionDeniedError, match="A web page"):  # ":alice-key"
        basic = {"authorization": "Basic OmFsaWNlLWtleQ=="}
        access.admit_http(*PREDICT, http("", **origin, **basic))
    assert access.admit_http(*PREDICT, http("alice", **origin)).owner == "alice"
    assert access.admit_http(*PREDICT, http("", host="server", **basic)).owner == "alice"


# --- bearer tokens ------------------------------------------------------------------------------


def with_tokens(tmp_path, **more):
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    jwt = {"key_file": str(secret), "algorithms": ["HS256"]}
    return with_keys(tmp_path, access={"jwt": jwt}, **more)


def bearer(given):
    return {b"authorization": f"Bearer {given}".encode()}


def test_a_token_has_roles_of_its_own_or_its_owner_s(tmp_path):
    access = with_tokens(tmp_path)
    assert access.admit_http(*RUN, bearer(token())).owner == "alice"  # roles of the file
    with pytest.raises(PermissionDeniedError):
        access.admit_http(*RUN, bearer(token(roles=["predict"])))
    carol = access.admit_http("GET", "/v1/models", bearer(token(sub="carol")))
    assert (carol.owner, carol.roles, carol.is_authenticated) == ("carol", frozenset(), True)
    assert access.admit_http(*PREDICT, http("alice")).owner == "alice"  # keys work beside tokens
    with pytest.raises(UnauthenticatedError, match="refused: decode"):
        access.admit_http(*PREDICT, http("nobody"))


def test_a_verified_token_is_remembered_until_it_expires(tmp_path, monkeypatch):
    wall = Clock()
    wall.now = time.time()
    access = with_tokens(tmp_path, wall_clock=wall)
    verified = []
    original = module.BearerTokens.verify
    monkeypatch.setattr(
        module.BearerTokens,
        "verify",
        lambda self, given: verified.append(given) or original(self, given),
    )
    given = token(exp=int(wall.now) + 60)
    for _ in range(3):
        access.admit_http(*PREDICT, bearer(given))
    assert len(verified) == 1
    wall.now += 91
    access.admit_http(*PREDICT, bearer(given))
    assert len(verified) == 2
    access.use(access.read())
    access.admit_http(*PREDICT, bearer(given))
    assert len(verified) == 3


def test_owners_of_tokens_have_the_file_s_limits(tmp_path):
    access = with_tokens(tmp_path, file={"limits": {"requests_per_second": 1}})
    access.admit_http("GET", "/v1/models", bearer(token(sub="carol")))
    access.admit_http("GET", "/v1/models", bearer(token(sub="dan")))
    with pytest.raises(LimitExceededError, match=r"^carol exceeds"):
        access.admit_http("GET", "/v1/models", bearer(token(sub="carol", jti="another")))


# --- limits and reload --------------------------------------------------------------------------


def test_limits_are_the_owner_s_whatever_it_shows(tmp_path):
    clock = Clock()
    limited = {**OWNERS["alice"], "limits": {"requests_per_second": 2}}
    access = with_keys(tmp_path, {**OWNERS, "alice": limited}, clock)
    access.admit_http(*PREDICT, http("alice"))
    access.admit_rpc(STEP, {}, ("alice.example",))
    with pytest.raises(LimitExceededError, match=r"^alice exceeds its limit") as error:
        access.admit_http(*PREDICT, http("alice"))
    assert error.value.retry_after_seconds == pytest.approx(0.5)
    access.admit_http("GET", "/healthz", http("alice"))
    clock.now += 0.5
    access.admit_http(*PREDICT, http("alice"))


def test_keys_are_read_again(tmp_path):
    access = with_keys(tmp_path)
    access.admit_http(*RUN, http("alice"))
    write(tmp_path / "keys.yaml", {"carol": {"roles": ["predict"]}})
    access.use(access.read())
    assert access.admit_http(*PREDICT, http("carol")).owner == "carol"
    with pytest.raises(UnauthenticatedError, match="unknown"):
        access.admit_http(*RUN, http("alice"))


def test_new_limits_hold_for_what_was_counted(tmp_path):
    limited = {**OWNERS["alice"], "limits": {"concurrent_steps": 5}}
    access = with_keys(tmp_path, {"alice": limited})
    usage = access.admit_http(*RUN, http("alice")).usage
    assert usage is not None
    usage.begin_step()
    limited["limits"]["concurrent_steps"] = 1
    write(tmp_path / "keys.yaml", {"alice": limited})
    access.use(access.read())
    again = access.admit_http(*RUN, http("alice")).usage
    assert again is usage
    with pytest.raises(LimitExceededError):
        again.begin_step()


def test_a_wrong_file_changes_nothing(tmp_path):
    access = with_keys(tmp_path)
    (tmp_path / "keys.yaml").write_text("owners: 1")
    with pytest.raises(InvalidArgumentError):
        access.read()
    access.admit_http(*RUN, http("alice"))


# --- texts --------------------------------------------------------------------------------------


def test_paths_of_the_server_are_for_admins(tmp_path):
    access = with_keys(tmp_path, models=[{"name": "m", "base_path": "/srv/models/m"}])
    text = f"{os.getcwd()}/x /srv/models/m/1 {tmp_path}/keys.yaml"
    assert access.admit_http(*RUN, http("alice")).shown_text(text) == "[path] [path] [path]"
    assert access.admit_http(*RUN, http("root")).shown_text(text) == text
    assert without().admit_http(*RUN, {}).shown_text(f"{os.getcwd()}/x") == "[path]"


def test_folders_for_models_are_for_those_who_may_administer(tmp_path):
    folders = {
        "admin": {"enabled": True, "model_folders": ["/srv/admin"]},
        "sessions": {"model_folders": ["/srv/open"]},
    }
    access = with_keys(tmp_path, **folders)
    assert access.admit_http(*RUN, http("alice")).shown_text("/srv/admin/a") == "[path]"
    assert access.admit_http(*RUN, http("alice")).shown_text("/srv/open/a") == "[path]"
    open_to_all = without(**folders).admit_http(*RUN, {})
    assert open_to_all.shown_text("/srv/admin/a /srv/open/a") == "/srv/admin/a [path]"


PAGE = {"host": "server", "x-runstep-console": "1"}


def test_what_goes_on_ends_with_the_key_that_it_began_with(tmp_path):
    access = with_keys(tmp_path)
    cookie = {"cookie": f"runstep_console={access.log_in('bob-key')}"} | PAGE
    by_key, by_login = access.still_known(http("bob")), access.still_known(http(None, **cookie))
    others = access.still_known(http("alice"))
    assert by_key() and by_login() and others()
    write(tmp_path / "keys.yaml", {name: OWNERS[name] for name in OWNERS if name != "bob"})
    access.use(access.read())
    assert not by_key() and not by_login() and others()


def test_what_goes_on_ends_with_its_login_and_does_not_prolong_it(tmp_path):
    clock = Clock()
    access = with_keys(tmp_path, clock=clock)
    headers = [
        http(None, **PAGE, cookie=f"runstep_console={access.log_in('bob-key')}") for _ in range(2)
    ]
    left, idle = map(access.still_known, headers)
    access.console_logins.end(headers[0])
    assert not left() and idle()
    clock.now += IDLE_SECONDS
    assert idle()
    clock.now += 1
    assert not idle()


def test_what_needs_no_credential_goes_on(tmp_path):
    assert Access(Settings(), SESSIONS.get).still_known(http(None))()
    access = with_keys(tmp_path)
    assert access.still_known(http(None))()  # a certificate's caller, or anyone if that may be
