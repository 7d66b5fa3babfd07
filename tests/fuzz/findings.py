"""Inputs that were findings once, kept as `findings/<target>/<name>.bin`; tests run them."""

from __future__ import annotations

import hashlib
import pathlib
import re

FOLDER = pathlib.Path(__file__).parent / "findings"


def keep(target: str, kind: str, data: bytes) -> pathlib.Path:
    """Write an input that is a finding of this kind; return its file."""
    without_folders = re.sub(r"(?:\w+/)+(\w+)\.py", r"\1", kind)
    words = re.sub(r"[^a-z0-9]+", "_", without_folders.lower()).strip("_")[:80]
    path = FOLDER / target / f"{words}_{hashlib.sha256(data).hexdigest()[:8]}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def kept(target: str) -> list[pathlib.Path]:
    """Return the files of a target's inputs, sorted."""
    return sorted((FOLDER / target).glob("*.bin"))
