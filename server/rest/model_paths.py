"""Parse the URLs of TensorFlow Serving's REST API exactly as TensorFlow Serving's router does.

URLs are case-insensitive, and names are percent-decoded after matching. A URL that does not match
is a malformed request (400), not an unknown path or method.

TF: tensorflow_serving/model_servers/http_rest_api_util.cc (ParseModelInfo)
"""

from __future__ import annotations

import dataclasses
import functools
import re
from urllib.parse import unquote

from runtime.errors import InvalidArgumentError

_VERSION = r"(?:(?:/versions/(?P<version>\d+))|(?:/labels/(?P<label>[^/:]+)))?"
_INFERENCE = re.compile(
    rf"/v1/models/(?P<name>[^/:]+){_VERSION}:(?P<call>classify|regress|predict)",
    re.IGNORECASE | re.ASCII,
)
_INFORMATION = re.compile(
    rf"/v1/models(?:/(?P<name>[^/:]+))?{_VERSION}(?:/(?P<call>metadata))?",
    re.IGNORECASE | re.ASCII,
)
_PATTERNS = {"POST": _INFERENCE, "GET": _INFORMATION}
_CALLS = ("classify", "regress", "predict", "metadata")
_MAX_VERSION = (1 << 63) - 1


@dataclasses.dataclass(frozen=True, slots=True)
class ModelPath:
    """A parsed URL; `call` is predict, classify, regress, metadata, status or list."""

    call: str
    name: str
    version: int | None = None
    label: str | None = None


class MalformedPathError(InvalidArgumentError):
    """A URL that is wrong; `name` is the model that it names, or empty."""

    def __init__(self, message: str, name: str | None = None) -> None:
        super().__init__(message)
        self.name = unquote(name or "")


@functools.lru_cache(maxsize=1024)
def parse_model_path(method: str, path: str) -> ModelPath:
    """Parse the URL of a request; `path` must be percent-encoded and without the query.

    Raises MalformedPathError `Malformed request: <method> <path>` if the URL does not match.
    """
    pattern = _PATTERNS.get(method)
    match = None if pattern is None else pattern.fullmatch(path)
    if match is None:
        raise _malformed(method, path)
    call = match["call"]
    if call is not None and call not in _CALLS:  # a call in upper case matches but is unknown
        if method == "POST":
            raise _malformed(method, path, match["name"])
        call = None
    version, name = match["version"], match["name"]
    if version is not None and int(version) > _MAX_VERSION:
        raise MalformedPathError(f"Failed to convert version: {version} to numeric.", name)
    if name is None:
        if version is not None or match["label"] is not None or call is not None:
            raise MalformedPathError("Missing model name in request.")
        return ModelPath("list", "")
    return ModelPath(
        call or "status",
        unquote(name),
        None if version is None else int(version),
        None if match["label"] is None else unquote(match["label"]),
    )


def _malformed(method: str, path: str, name: str | None = None) -> MalformedPathError:
    return MalformedPathError(f"Malformed request: {method} {path}", name)
