"""The settings of who may call."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from server.settings_sections.section import Section

JwtAlgorithm = Literal[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512",
    "ES256", "ES384", "ES512", "EdDSA",
]  # fmt: skip


class JwtSettings(Section):
    """How bearer tokens are verified; `key_file` is a public key (PEM), or a secret for HS…."""

    key_file: str | None = None
    algorithms: tuple[JwtAlgorithm, ...] = Field(default=("RS256",), min_length=1)
    issuer: str | None = None
    audience: str | None = None
    owner_claim: str = "sub"
    roles_claim: str = "roles"

    @model_validator(mode="after")
    def _one_kind_of_key(self) -> JwtSettings:
        """Check that a public key can't be used as a secret (RFC 8725 §2.1)."""
        if len({name.startswith("HS") for name in self.algorithms}) > 1:
            raise ValueError("algorithms has HS…, which takes a secret, and those of public keys")
        return self


class AccessSettings(Section):
    """Who may call: see SECURITY.md."""

    keys_file: str | None = None
    jwt: JwtSettings = JwtSettings()
    anonymous_roles: tuple[Literal["predict", "sessions"], ...] = ()
    hosts: tuple[str, ...] = ()
