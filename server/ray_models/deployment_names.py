"""The names that the deployments of a Ray Serve application have; they need no Ray."""

from __future__ import annotations

import hashlib
import re

FRONT = "front"
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")


def deployment_name(model: str) -> str:
    """Return the name of a model's deployment; Ray Serve gives some characters a meaning."""
    if _PLAIN.match(model):
        return f"model_{model}"
    return f"model_{hashlib.sha256(model.encode()).hexdigest()[:16]}_"
