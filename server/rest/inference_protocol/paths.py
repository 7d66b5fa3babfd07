"""The paths of the protocol, and the calls that they mean.

Source: Open Inference Protocol (HTTP/REST); Triton's extensions
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from runtime.errors import InvalidArgumentError, NotFoundError
from server.errors import MethodNotAllowedError

_MODEL = r"/v2/models/(?P<name>[^/]+)"
_VERSION = r"(?:/versions/(?P<version>[^/]+))?"
_REGION = r"(?:/region/(?P<name>[^/]+))?"
_INFER = re.compile(rf"{_MODEL}{_VERSION}/infer\Z")
# (method, pattern, call); patterns are of percent-encoded paths.
_PATHS: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (method, re.compile(rf"{pattern}/?\Z"), call)
    for method, pattern, call in (
        ("GET", r"/v2", "server_metadata"),
        ("GET", r"/v2/health/live", "server_live"),
        ("GET", r"/v2/health/ready", "server_ready"),
        ("GET", r"/v2/models/stats", "statistics"),
        ("GET", rf"{_MODEL}{_VERSION}", "model_metadata"),
        ("GET", rf"{_MODEL}{_VERSION}/ready", "model_ready"),
        ("GET", rf"{_MODEL}{_VERSION}/config", "model_config"),
        ("GET", rf"{_MODEL}{_VERSION}/stats", "statistics"),
        ("POST", rf"{_MODEL}{_VERSION}/infer", "infer"),
        ("POST", r"/v2/repository/index", "repository_index"),
        ("POST", r"/v2/repository/models/(?P<name>[^/]+)/load", "repository_load"),
        ("POST", r"/v2/repository/models/(?P<name>[^/]+)/unload", "repository_unload"),
        ("GET", rf"(?:{_MODEL}|/v2)/trace/setting", "trace_settings"),
        ("POST", rf"(?:{_MODEL}|/v2)/trace/setting", "change_trace_settings"),
        ("GET", r"/v2/logging", "log_settings"),
        ("POST", r"/v2/logging", "change_log_settings"),
        ("GET", rf"/v2/(?:system|cuda)sharedmemory{_REGION}/status", "shared_memory_status"),
        ("POST", rf"/v2/(?:system|cuda)sharedmemory{_REGION}/register", "shared_memory_register"),
        (
            "POST",
            rf"/v2/(?:system|cuda)sharedmemory{_REGION}/unregister",
            "shared_memory_unregister",
        ),
    )
)


class Target(NamedTuple):
    """What a request means: the call, and the model and version in its path, or ""."""

    call: str
    name: str = ""
    version: str = ""


def parse_path(method: str, path: str) -> Target:
    """Return what a request of a percent-encoded path means.

    Raises NotFoundError if there is no such path, MethodNotAllowedError if it has another method,
    and InvalidArgumentError if a name is not UTF-8.
    """
    if method == "POST" and (found := _INFER.match(path)) is not None:
        return Target("infer", _decoded(found["name"]), _decoded(found["version"] or ""))
    allowed = []
    for taken, pattern, call in _PATHS:
        found = pattern.match(path)
        if found is None:
            continue
        if taken == method:
            groups = found.groupdict()
            return Target(
                call,
                _decoded(groups.get("name") or ""),
                _decoded(groups.get("version") or ""),
            )
        allowed.append(taken)
    if allowed:
        raise MethodNotAllowedError(", ".join(sorted(set(allowed))))
    raise NotFoundError("No such path; GET /docs lists those there are")


def _decoded(text: str) -> str:
    if "%" not in text:
        return text
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"The path is not UTF-8: {text!r:.80}") from None
