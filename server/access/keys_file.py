"""Read the file of owners: their hashed API keys, certificate names, roles and limits.

The file has SHA-256 hashes in place of keys. A key is random and long (`runstep key` makes one), so
that no slower hash is required. Messages never show a value of the file, because someone may have
put a key in it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from runtime.errors import InvalidArgumentError
from server.access.caller import Role
from server.access.limits import NO_LIMITS, Limits
from server.settings_errors import describe_without_values

KEY_PREFIX = "rs_"
_KEY_BYTES = 32
# May be logged, and is in messages.
OWNER_NAME = re.compile(r"[A-Za-z0-9_.@:/+=|-]{1,128}\Z")
_HASH = r"^[0-9a-f]{64}$"


@dataclasses.dataclass(frozen=True, slots=True)
class Owner:
    """What the file says of one owner."""

    name: str
    roles: frozenset[Role]
    limits: Limits


@dataclasses.dataclass(frozen=True, slots=True)
class Owners:
    """The owners of a file by name, by the digest of each key, and by certificate name.

    `limits` are those of owners whom only a bearer token names.
    """

    by_name: Mapping[str, Owner] = dataclasses.field(default_factory=dict)
    by_key: Mapping[bytes, Owner] = dataclasses.field(default_factory=dict)
    by_certificate: Mapping[str, Owner] = dataclasses.field(default_factory=dict)
    limits: Limits = NO_LIMITS


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _LimitsEntry(_Entry):
    requests_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    bytes_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    sessions: int | None = Field(default=None, ge=0)
    concurrent_steps: int | None = Field(default=None, ge=1)
    priorities: tuple[str, ...] | None = Field(default=None, min_length=1)
    pools: tuple[str, ...] | None = None


class _OwnerEntry(_Entry):
    roles: tuple[Role, ...] = ()
    keys: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()
    limits: _LimitsEntry | None = None


class _File(_Entry):
    limits: _LimitsEntry = _LimitsEntry()  # of owners who have no entry, or none of this name
    owners: dict[str, _OwnerEntry] = Field(default_factory=dict)


def new_key() -> str:
    """Return a new random key."""
    return KEY_PREFIX + secrets.token_urlsafe(_KEY_BYTES)


def key_digest(key: str) -> bytes:
    """Return the SHA-256 digest of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def read_owners(path: Path, priorities: Iterable[str], pools: Iterable[str]) -> Owners:
    """Read the file; limits may name only these priorities and pools.

    Raises InvalidArgumentError that names each wrong entry, but shows no value.
    """
    try:
        content = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise InvalidArgumentError(f"Cannot read {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError):  # their texts quote the file
        raise InvalidArgumentError(f"{path} is not YAML") from None
    try:
        file = _File.model_validate({} if content is None else content)
    except ValidationError as error:
        problems = describe_without_values(error, _File)
        raise InvalidArgumentError(f"Wrong entries in {path}: {problems}") from None
    try:
        return _owners(file, frozenset(priorities), frozenset(pools))
    except ValueError as error:
        raise InvalidArgumentError(f"Wrong entry in {path}: {error}") from None


def _owners(file: _File, priorities: frozenset[str], pools: frozenset[str]) -> Owners:
    by_name: dict[str, Owner] = {}
    by_key: dict[bytes, Owner] = {}
    by_certificate: dict[str, Owner] = {}

    def checked(entry: _LimitsEntry, where: str) -> Limits:
        limits = Limits(**entry.model_dump())
        for kind, given, known in (
            ("priorities", limits.priorities, priorities),
            ("pools", limits.pools, pools),
        ):
            unknown = sorted(set(given or ()) - known)
            if unknown:
                raise ValueError(f"limits.{kind} of {where}: {unknown} is not in {sorted(known)}")
        return limits

    for name, entry in file.owners.items():
        if not OWNER_NAME.match(name):
            raise ValueError(f"an owner's name must match {OWNER_NAME.pattern}")
        limits = file.limits if entry.limits is None else entry.limits
        owner = by_name[name] = Owner(
            name, frozenset(entry.roles), checked(limits, f"owners.{name}")
        )
        for number, digest in enumerate(entry.keys):
            if not re.match(_HASH, digest):
                raise ValueError(
                    f"owners.{name}.keys.{number} must be the SHA-256 of a key as 64 hexadecimal "
                    "digits; `runstep key` makes a key and its hash"
                )
            if by_key.setdefault(bytes.fromhex(digest), owner) is not owner:
                raise ValueError(f"owners.{name}.keys.{number} is also another owner's")
        for certificate in entry.certificates:
            if by_certificate.setdefault(certificate, owner) is not owner:
                raise ValueError(f"a certificate of {name} is also another owner's")
    return Owners(by_name, by_key, by_certificate, checked(file.limits, "the file"))
