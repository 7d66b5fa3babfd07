"""An HTTP client that checks what it receives, and counts its requests."""

from __future__ import annotations

import http.client
import json
import select
import urllib.parse
from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.soak.record import Failed, Record, WrongAnswer

ANSWER_SECONDS = 120  # no request of the soak may take longer
JSON = {"Content-Type": "application/json"}


class Client:
    """One persistent connection. One thread at a time may use it."""

    def __init__(self, address: str, record: Record) -> None:
        self._netloc = urllib.parse.urlsplit(address).netloc
        self._connection: http.client.HTTPConnection | None = None
        self._record = record
        self.kind = ""  # of the work that is done now

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = JSON,
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return the status, the headers and the body of an answer.

        Raises Failed (NO_ANSWER) if the connection breaks.
        """
        self._record.count(self.kind)
        if self._connection is not None and is_ended(self._connection):
            self.close()  # the server ends connections that are idle
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self._netloc, timeout=ANSWER_SECONDS)
        try:
            self._connection.request(method, path, body, dict(headers))
            answer = self._connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Failed("NO_ANSWER", f"{method} {path}: {type(error).__name__} {error}") from None

    def post(
        self, path: str, body: bytes, headers: Mapping[str, str] = JSON, status: int = 200
    ) -> bytes:
        """Return the body of the answer to a POST; raise Failed if it has another status."""
        got, _, content = self.request("POST", path, body, headers)
        if got != status:
            raise failure(got, content, path)
        return content

    def call(self, path: str, body: Any, **options: Any) -> Any:
        """Return the JSON of the answer to a POST of JSON."""
        return json.loads(self.post(path, json.dumps(body).encode(), **options))

    def refused(self, path: str, body: bytes, status: int, code: str, **options: Any) -> None:
        """POST what must be refused; raise WrongAnswer unless it is, as expected."""
        got, _, content = self.request("POST", path, body, **options)
        if got == status and json.loads(content).get("code") == code:
            return
        if got == 200:
            raise WrongAnswer(f"{path} answered 200 instead of {status} {code}")
        raise failure(got, content, f"{path}, which should have answered {status} {code}")

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def is_ended(connection: http.client.HTTPConnection) -> bool:
    """Return whether the server has ended a connection that waits for no answer."""
    return connection.sock is None or bool(select.select([connection.sock], [], [], 0)[0])


def failure(status: int, content: bytes, what: str) -> Failed:
    """Return the failure of an error's answer."""
    try:
        body = json.loads(content)
        return Failed(str(body.get("code", status)), f"{what}: {status} {body.get('error')}")
    except (ValueError, AttributeError):
        return Failed(str(status), f"{what}: {content[:200]!r}")


def check_equal(got: Any, expected: Any, what: str) -> None:
    """Raise WrongAnswer unless the two are equal."""
    if got != expected:
        raise WrongAnswer(f"{what}: {str(got)[:200]} instead of {str(expected)[:200]}")


def check_close(got: Any, expected: np.ndarray, what: str) -> None:
    """Raise WrongAnswer unless numbers agree to float32's precision of a few hundred additions."""
    values = np.asarray(got, np.float32)
    if values.shape != expected.shape:
        raise WrongAnswer(f"{what}: shape {values.shape} instead of {expected.shape}")
    scale = float(np.abs(expected).max(initial=0)) or 1.0
    off = float(np.abs(values - expected).max(initial=0)) / scale
    if not off < 1e-4:  # NaN, too
        raise WrongAnswer(f"{what}: off by {off:.3g} of the largest value")
