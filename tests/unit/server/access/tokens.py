"""Keys and signed tokens for tests."""

from __future__ import annotations

import time
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

SECRET = "a secret of at least sixty-four bytes, which every HS… algorithm accepts"


def key_pair() -> tuple[str, str]:
    """A private key and its public key for ES256, as PEM."""
    private = ec.generate_private_key(ec.SECP256R1())
    return (
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
        private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode(),
    )


def token(key: str = SECRET, algorithm: str = "HS256", **claims: Any) -> str:
    """A token of alice that is valid for an hour; a claim of None is left out."""
    values = {"sub": "alice", "exp": time.time() + 3600, **claims}
    present = {name: value for name, value in values.items() if value is not None}
    return jwt.encode(present, key, algorithm)
