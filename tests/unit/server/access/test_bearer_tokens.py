import base64
import builtins
import json
import time

import pytest

from runtime.errors import FailedPreconditionError, InvalidArgumentError, UnauthenticatedError
from server.access.bearer_tokens import LEEWAY_SECONDS, BearerTokens, Claims
from server.access.caller import Role
from server.settings_sections.access import JwtSettings
from tests.unit.server.access.tokens import SECRET, key_pair, token

PRIVATE, PUBLIC = key_pair()


def tokens(tmp_path, key=SECRET, algorithms=("HS256",), **settings):
    path = tmp_path / "key"
    path.write_text(key)
    return BearerTokens(JwtSettings(key_file=str(path), algorithms=algorithms, **settings))


def test_a_token_names_its_owner_and_roles(tmp_path):
    expires = int(time.time()) + 60
    claims = tokens(tmp_path).verify(token(exp=expires, roles=["predict", "admin", "other", 1]))
    roles = frozenset({Role.PREDICT, Role.ADMIN})
    assert claims == Claims("alice", roles, expires + LEEWAY_SECONDS)


@pytest.mark.parametrize(
    ("roles", "expected"),
    [(None, None), ("predict sessions", {"predict", "sessions"}), ([], set()), (7, set())],
)
def test_forms_of_the_claim_of_roles(tmp_path, roles, expected):
    assert tokens(tmp_path).verify(token(roles=roles)).roles == expected


def test_claims_may_have_other_names(tmp_path):
    verifier = tokens(tmp_path, owner_claim="email", roles_claim="scope")
    claims = verifier.verify(token(sub=None, email="a@b.example", scope="predict"))
    assert (claims.owner, claims.roles) == ("a@b.example", {Role.PREDICT})


def test_public_keys(tmp_path):
    claims = tokens(tmp_path, PUBLIC, ("ES256",)).verify(token(PRIVATE, "ES256"))
    assert claims.owner == "alice"


def unsigned(**header):
    """A token whose header says that it has no signature."""
    parts = [{"alg": "none", **header}, {"sub": "alice", "exp": time.time() + 60}]
    text = ".".join(
        base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts
    )
    return f"{text}."


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda: "abc", "decode"),
        (lambda: "a.b.c", "decode"),
        (lambda: token() + "x", "invalid signature"),
        (lambda: token("another " + SECRET), "invalid signature"),
        (lambda: token(algorithm="HS512"), "invalid algorithm"),
        (lambda: unsigned(), "invalid algorithm"),
        (lambda: token(exp=time.time() - LEEWAY_SECONDS - 5), "expired signature"),
        (lambda: token(exp=None), "missing required claim"),
        (lambda: token(sub=None), "missing required claim"),
        (lambda: token(nbf=time.time() + 3600), "immature signature"),
        (lambda: token(aud="other"), "invalid audience"),
        (lambda: token(iss="other"), "invalid issuer"),
    ],
)
def test_other_tokens_are_refused_with_the_reason(tmp_path, made, reason):
    verifier = tokens(tmp_path, issuer=None if reason != "invalid issuer" else "me")
    given = made()
    with pytest.raises(UnauthenticatedError, match=f"^The bearer token is refused: {reason}$") as e:
        verifier.verify(given)
    assert given not in e.value.message


@pytest.mark.parametrize("owner", ["", "a b", "a\nb", "x" * 129])
def test_an_owner_must_be_a_name_that_may_be_logged(tmp_path, owner):
    with pytest.raises(UnauthenticatedError, match="The claim 'sub' of the bearer token"):
        tokens(tmp_path).verify(token(sub=owner))


def test_a_public_key_is_never_a_secret(tmp_path):
    with pytest.raises(ValueError, match="algorithms has HS…"):
        JwtSettings(algorithms=("HS256", "RS256"))
    with pytest.raises(InvalidArgumentError, match="is not a public key for HS256"):
        tokens(tmp_path, PUBLIC)


@pytest.mark.parametrize(
    ("key", "algorithms", "message"),
    [
        ("short", ("HS256",), "must have at least 32 bytes"),
        ("no key", ("RS256",), "is not a public key for RS256"),
        (PUBLIC, ("RS256",), "is not a public key for RS256"),
    ],
)
def test_a_key_must_fit(tmp_path, key, algorithms, message):
    with pytest.raises(InvalidArgumentError, match=message) as error:
        tokens(tmp_path, key, algorithms)
    assert "BEGIN" not in error.value.message


def test_a_missing_key(tmp_path):
    with pytest.raises(InvalidArgumentError, match="Cannot read"):
        BearerTokens(JwtSettings(key_file=str(tmp_path / "none")))


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    original = builtins.__import__

    def without_jwt(name, *rest):
        if name == "jwt":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_jwt)
    with pytest.raises(FailedPreconditionError, match=r"runstep\[auth\]"):
        tokens(tmp_path)
