"""The calls about sessions: open, run, extend, keep alive, cancel, close."""

from __future__ import annotations

import base64
import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from runstep.client.exchange import JSON, Request, Steps, check, get, post, priority_header
from runstep.client.tensors import session_array, session_value
from runtime.errors import InvalidArgumentError

_PATH = "/v1/sessions"
# The same in all calls of a session: a gateway that hashes it sends them all to the same server.
AFFINITY_HEADER = "X-Session-Affinity"


@dataclasses.dataclass(frozen=True, slots=True)
class SessionOptions:
    """From what a session is opened: at most one of the first four; none is an empty session.

    Attributes:
        model: A served model, with `version` or `label`; or a folder on the server, `export_dir`.
        graph_def: A serialized GraphDef; `meta_graph_def` a serialized MetaGraphDef.
        tags: Of the MetaGraphDef that is loaded.
        config: ConfigProto as JSON with proto field names.
        lease_seconds: Idle time after which the server closes it; default: the server's.
        name: A label for listings.
    """

    model: str | None = None
    export_dir: str | None = None
    graph_def: bytes | None = None
    meta_graph_def: bytes | None = None
    version: int | None = None
    label: str | None = None
    tags: Sequence[str] | None = None
    config: Mapping[str, Any] | None = None
    lease_seconds: float | None = None
    name: str | None = None

    def body(self) -> dict[str, Any]:
        """Return the request's body; raise InvalidArgumentError for more than one source."""
        sources = ("model", "export_dir", "graph_def", "meta_graph_def")
        given = [name for name in sources if getattr(self, name) is not None]
        if len(given) > 1:
            raise InvalidArgumentError(f"expected one of {', '.join(sources)}, got {given}")
        found = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bytes):
                value = base64.b64encode(value).decode()
            if value is not None:
                found[field.name] = value
        return found


def open_session(options: SessionOptions) -> Steps[dict[str, Any]]:
    """Open a session; return the answer, whose `session` is the id.

    It is sent once: a session that was opened without an answer ends with its lease.
    """
    found: dict[str, Any] = check((yield post(_PATH, options.body(), refusable=True))).json()
    return found


def affinity() -> dict[str, str]:
    """Return the header of all calls of a session that is not open yet."""
    return {AFFINITY_HEADER: secrets.token_hex(8)}


def run(
    session: str,
    fetches: str | Sequence[str] = (),
    feeds: Mapping[str, Any] | None = None,
    *,
    targets: Sequence[str] = (),
    priority: str | None = None,
    timeout: float | None = None,
    request_id: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Steps[Any]:
    """Run a step.

    Args:
        session: Its id.
        fetches: A tensor's name, or several.
        feeds: Tensor name → array, or a nested list or number, which takes its type from the graph.
        targets: Nodes to run whose outputs are not returned.
        priority: An entry of the server's `priorities`.
        timeout: Seconds, the wait in the server's queues included; then DeadlineExceededError.
        request_id: An id of the caller's, with which another thread can `cancel` the step.
        options: RunOptions as JSON with proto field names.

    Returns:
        The array of the fetch, or a list of arrays if `fetches` is a list.

    Raises:
        OpError: The step's error. A step is sent once, because it may have changed state.
    """
    names = [fetches] if isinstance(fetches, str) else list(fetches)
    body: dict[str, Any] = {"fetches": names}
    if feeds:
        body["feeds"] = {name: session_value(value) for name, value in feeds.items()}
    if targets:
        body["targets"] = list(targets)
    if priority is not None:
        body["priority"] = priority
    if options:
        body["options"] = dict(options)
    request = post(f"{_PATH}/{session}:run?encoding=b64", body, timeout, refusable=False)
    headers = priority_header(priority)
    if request_id is not None:
        headers["X-Request-Id"] = request_id
    if headers:
        request = dataclasses.replace(request, headers={**JSON, **headers})
    outputs = check((yield request)).json()["outputs"]
    arrays: list[np.ndarray] = [session_array(outputs[name]) for name in names]
    return arrays[0] if isinstance(fetches, str) else arrays


def extend(session: str, graph_def: bytes, graph_version: int | None = None) -> Steps[int]:
    """Add the nodes of a serialized GraphDef; return the new graph version.

    `graph_version` is the version to which they are added: AbortedError if it is another.
    """
    body: dict[str, Any] = {"graph_def": base64.b64encode(graph_def).decode()}
    if graph_version is not None:
        body["graph_version"] = graph_version
    answer = check((yield post(f"{_PATH}/{session}:extend", body, refusable=False))).json()
    return int(answer["graph_version"])


def keep_alive(session: str, lease_seconds: float | None = None) -> Steps[str]:
    """Renew the lease; return when it ends (RFC 3339)."""
    body = {} if lease_seconds is None else {"lease_seconds": lease_seconds}
    answer = check((yield post(f"{_PATH}/{session}:keepAlive", body, refusable=True))).json()
    return str(answer["expires_at"])


def cancel(session: str, request_id: str) -> Steps[None]:
    """Cancel the step that runs with a request id; the session lives on."""
    check((yield post(f"{_PATH}/{session}:cancel", {"request_id": request_id}, refusable=True)))


def information(session: str) -> Steps[dict[str, Any]]:
    """Return the server's listing of a session: state, model, steps, bytes, lease."""
    found: dict[str, Any] = check((yield get(f"{_PATH}/{session}"))).json()
    return found


def close(session: str) -> Steps[None]:
    """Close a session; running steps are cancelled. Closing it again has no effect."""
    request = Request("DELETE", f"{_PATH}/{session}", is_idempotent=True, is_refusable=True)
    check((yield request))
