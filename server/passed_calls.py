"""HTTP requests and responses as one process passes them to another, whole.

Large bodies are arrays of bytes, which Ray puts into shared memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

_LARGE_BYTES = 64 << 10  # Ray sends what is smaller than about 100 kB within the call
Header: TypeAlias = tuple[bytes, bytes]
Body: TypeAlias = "bytes | np.ndarray"


@dataclasses.dataclass(frozen=True, slots=True)
class PassedRequest:
    """A request that was received elsewhere.

    `target` is the raw path and query; the names of `headers` are in lower case.
    `certificate_names` are those of the client.
    """

    method: str
    target: bytes
    headers: list[Header]
    body: Body = b""
    certificate_names: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class PassedResponse:
    """The response to it."""

    status: int
    headers: list[Header]
    body: Body = b""


def passed_body(parts: Sequence[bytes | memoryview]) -> Body:
    """Return a body as it is passed; views, which can't be pickled, are copied."""
    body = parts[0] if len(parts) == 1 else b"".join(parts)
    return bytes(body) if len(body) < _LARGE_BYTES else np.frombuffer(body, np.uint8)


def view_of(body: Body) -> memoryview:
    """Return the bytes of a body without copying them."""
    return memoryview(body) if isinstance(body, bytes) else body.data


def received_body(body: Body) -> bytes:
    """Return the bytes of a body that was passed."""
    return body if isinstance(body, bytes) else body.tobytes()
