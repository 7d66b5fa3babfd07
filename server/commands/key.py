"""`runstep key`: make an API key."""

from __future__ import annotations

from server.access.keys_file import key_digest, new_key


def key() -> int:
    """Print a new key, and the entry of its hash, which does not allow to find the key."""
    made = new_key()
    print(f"key:    {made}")
    print(f"sha256: {key_digest(made).hex()}")
    return 0
