"""Inputs that were findings once, kept as `findings/<target>/<name>.bin`; tests run them."""

from __future__ import annotations

import hashlib
import pathlib
import re

FOLDER = pathlib.Path(__file__).parent / "findings"


def keep(target: str, kind: str, data: bytes) -> pathlib.Path:
    """Write an input that is a finding of this kind; return its file."""
    words = re.sub(r"[^a-z]+", "_", kind.lower()).strip("_")[-60:].strip("_")
    path = FOLDER / target / f"{words}_{hashlib.sha256(data).hexdigest()[:8]}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def kept(target: str) -> list[pathlib.Path]:
    """Return the files of a target's inputs, sorted."""
    return sorted((FOLDER / target).glob("*.bin"))
