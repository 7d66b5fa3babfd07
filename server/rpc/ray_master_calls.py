"""RayMasterCalls: TensorFlow's master service of a front end whose sessions are on a Ray cluster.

Sessions of one owner share their resources there, so one node has the master: it opens the
sessions of gRPC clients. A call on a session goes to the node of the session, however it was
opened.

Guarantees: used from one event loop; requests and responses are passed on as they are.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import protos as pb
from runtime.errors import AbortedError, NotFoundError
from server.codec.message_fields import timeout_of_run_step
from server.host import Host
from server.ray_sessions.host_ids import timeout_of
from server.ray_sessions.ray_host import RayHost
from server.rpc.call import CallContext, Method, Reply
from server.rpc.passed_metadata import passed_metadata
from server.sessions.session_errors import SessionGoneError

_OF_MASTER = frozenset({"CreateSession", "Reset"})
_Handle = pb.CloseSessionRequest
_ABORTED = "Session {} is not found. Possibly, this master has restarted."


def ray_master_calls(host: Host, service: str, methods: dict[str, Method]) -> dict[str, Method]:
    """Return the methods of the master service, which pass calls on."""
    assert isinstance(host, RayHost)
    return {
        name: Method(
            bytes,
            functools.partial(_answer, host, name, f"/{service}/{name}"),
            method.frees_memory,
        )
        for name, method in methods.items()
    }


async def _answer(host: RayHost, name: str, path: str, data: bytes, context: CallContext) -> Reply:
    # Field 1 is the handle, apart from the master's messages; the rest is not looked at.
    handle = "" if name in _OF_MASTER else _Handle.FromString(data).session_handle
    if not handle and name not in _OF_MASTER:
        raise AbortedError(_ABORTED.format(handle))
    try:
        content: Any = await host.rpc(
            handle, path, data, passed_metadata(context), _seconds_left(name, handle, data, context)
        )
    except (NotFoundError, SessionGoneError) as error:
        if not handle:
            raise
        raise AbortedError(_ABORTED.format(handle)) from error
    return Reply(len(content), bytes, (content,))


def _seconds_left(name: str, handle: str, data: bytes, context: CallContext) -> float | None:
    """Return the time until the deadline of the call or of its step, or None.

    A step's is in its options, or else that of the session. The host keeps both; this is for when
    it does not answer.
    """
    is_step = name == "RunStep"
    milliseconds = (timeout_of_run_step(data) or timeout_of(handle)) if is_step else 0
    if not milliseconds:
        return context.seconds_left
    left = math.inf if context.seconds_left is None else context.seconds_left
    return min(left, milliseconds / 1000)
