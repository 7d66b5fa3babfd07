"""Describe the session calls for `/docs`.

An entry is the keyword arguments of a FastAPI route, or the OpenAPI operation of a plain route,
which `server.rest.openapi` adds to the schema. A test sends every example to a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel

import protos as pb
from runtime.api import DataType, tensor_to_proto
from server.codec.scalars import encode_base64
from server.rest.http_messages import PROTOBUF
from server.rest.session_bodies import (
    CancelBody,
    CreateBody,
    ExtendBody,
    KeepAliveBody,
    MakeCallableBody,
    PartialRunSetupBody,
    ReleaseCallableBody,
)


def half_plus_two_graph() -> pb.GraphDef:
    """Return the graph of the examples: y = x / 2 + 2 on float32."""
    graph = pb.GraphDef()
    x = graph.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = DataType.FLOAT  # type: ignore[assignment] # the same numbers
    _constant(graph, "half", 0.5)
    _constant(graph, "two", 2.0)
    _binary(graph, "Mul", "half_x", "x", "half")
    _binary(graph, "AddV2", "y", "half_x", "two")
    return graph


def square_of_y_graph() -> pb.GraphDef:
    """Return the graph by which the examples extend the session: z = y * y."""
    graph = pb.GraphDef()
    _binary(graph, "Mul", "z", "y", "y")
    return graph


def _constant(graph: pb.GraphDef, name: str, value: float) -> None:
    node = graph.node.add(name=name, op="Const")
    node.attr["dtype"].type = DataType.FLOAT  # type: ignore[assignment]
    node.attr["value"].tensor.CopyFrom(tensor_to_proto(np.array(value, np.float32)))


def _binary(graph: pb.GraphDef, op: str, name: str, left: str, right: str) -> None:
    node = graph.node.add(name=name, op=op, input=[left, right])
    node.attr["T"].type = DataType.FLOAT  # type: ignore[assignment]


def _base64(graph: pb.GraphDef) -> str:
    return encode_base64(graph.SerializeToString(deterministic=True))


# An example body for each call. A server accepts them in this order.
EXAMPLES: dict[str, dict[str, Any]] = {
    "create_session": {
        "graph_def": _base64(half_plus_two_graph()),
        "lease_seconds": 60,
        "name": "example",
    },
    "run_session": {
        "feeds": {"x:0": [1.0, 2.0, 5.0]},
        "fetches": ["y:0"],
        "priority": "low",
        "options": {"timeout_in_ms": 500},
    },
    "extend_session": {"graph_def": _base64(square_of_y_graph()), "graph_version": 0},
    "keep_session_alive": {"lease_seconds": 120},
    "cancel_step": {"request_id": "the X-Request-Id of a running step"},
    "make_callable": {"options": {"feed": ["x:0"], "fetch": ["y:0"]}},
    "run_callable": {"handle": 1, "feeds": [[1.0, 2.0]]},
    "release_callable": {"handle": 1},
    "partial_run_setup": {"feeds": ["x:0"], "fetches": ["half_x:0", "y:0"]},
    "partial_run": {
        "partial_run_handle": "the handle of :partialRunSetup",
        "feeds": {"x:0": [1.0]},
        "fetches": ["half_x:0"],
    },
}

_ERRORS = {
    400: "A wrong body, name, type or shape; every error has `error`, `code`, `request_id`",
    404: "No such session, model, version or target",
    410: "The session was closed, or its lease expired",
}
# The errors of calls that run no step; each lists those that it can return.
_CALL_ERRORS = _ERRORS | {
    403: "The folder, the pool or a graph of one's own is not allowed here",
    409: "The graph has another version than `graph_version`",
    429: "Too many sessions are open (see Retry-After), or the graph exceeds a limit",
    503: "The model is still loading; see Retry-After",
    504: "The deadline passed (`sessions.call_timeout_ms`)",
}
_RUN_ERRORS = {
    400: _ERRORS[400],
    403: "The step may not use the pool, or a file that it reads or writes",
    404: _ERRORS[404],
    410: _ERRORS[410],
    429: "The pool's queue is full (see Retry-After), or the step exceeds a limit",
    499: "The step was cancelled, or the session closed",
    504: "The deadline passed",
}


def _request_body(
    name: str, model: type[BaseModel] | None, *, required: bool, protobuf: str = ""
) -> dict[str, Any]:
    schema = {"type": "object"} if model is None else model.model_json_schema()
    content: dict[str, Any] = {
        "application/json": {"schema": schema, "example": EXAMPLES[name]},
    }
    if protobuf:
        content[PROTOBUF] = {
            "schema": {"type": "string", "format": "binary", "title": protobuf},
        }
    return {"content": content, "required": required}


def _fastapi_row(
    summary: str,
    errors: Sequence[int] = (),
    *,
    status: int = 200,
    body: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "summary": summary,
        "status_code": status,
        "responses": {code: {"description": _CALL_ERRORS[code]} for code in errors},
        "openapi_extra": {} if body is None else {"requestBody": body},
    }


# Maps the name of a call to keyword arguments of FastAPI's add_api_route.
SESSION_DOCS: dict[str, dict[str, Any]] = {
    "create_session": _fastapi_row(
        "Open a session",
        (400, 403, 404, 429, 503, 504),
        status=201,
        body=_request_body(
            "create_session", CreateBody, required=False, protobuf="CreateSessionRequest"
        ),
    ),
    "list_sessions": _fastapi_row("List open sessions"),
    "extend_session": _fastapi_row(
        "Add nodes to the graph",
        (400, 403, 404, 409, 410, 429, 504),
        body=_request_body(
            "extend_session", ExtendBody, required=True, protobuf="ExtendSessionRequest"
        ),
    ),
    "close_session": _fastapi_row("Close the session", (404,)),
    "keep_session_alive": _fastapi_row(
        "Renew the lease",
        (400, 404, 410),
        body=_request_body("keep_session_alive", KeepAliveBody, required=False),
    ),
    "cancel_step": _fastapi_row(
        "Cancel a running step",
        (400, 404, 410),
        body=_request_body("cancel_step", CancelBody, required=True),
    ),
    "get_session_graph": _fastapi_row("The graph as it is now", (404, 410)),
    "get_session_devices": _fastapi_row("The session's devices", (404, 410)),
    "get_session": _fastapi_row("One open session", (404, 410)),
    "delete_session": _fastapi_row("Close the session", (404,)),
}


def _operation(
    name: str, summary: str, protobuf: str, model: type[BaseModel] | None = None
) -> dict[str, Any]:
    header = {"in": "header", "required": False, "schema": {"type": "string"}}
    return {
        "tags": ["sessions"],
        "operationId": name,
        "summary": summary,
        "parameters": [
            {"name": "session_id", "in": "path", "required": True, "schema": {"type": "string"}},
            {"name": "encoding", "in": "query", "required": False,
             "schema": {"enum": ["json", "b64"]}},
            {"name": "X-Priority", **header},
            {"name": "X-Timeout-Ms", **header},
        ],
        "requestBody": _request_body(name, model, required=True, protobuf=protobuf),
        "responses": {"200": {"description": "Done"}}
        | {str(code): {"description": text} for code, text in _RUN_ERRORS.items()},
    }  # fmt: skip


# Maps the name of a plain route's endpoint to its OpenAPI operation.
STEP_DOCS: dict[str, dict[str, Any]] = {
    "run_session": _operation("run_session", "Run one step", "RunStepRequest"),
    "partial_run_setup": _operation(
        "partial_run_setup",
        "Begin a step that is fed in parts",
        "PartialRunSetupRequest",
        PartialRunSetupBody,
    ),
    "partial_run": _operation("partial_run", "Feed and fetch a part of a step", "RunStepRequest"),
    "make_callable": _operation(
        "make_callable", "Prepare a step", "MakeCallableRequest", MakeCallableBody
    ),
    "run_callable": _operation("run_callable", "Run a prepared step", "RunCallableRequest"),
    "release_callable": _operation(
        "release_callable", "Forget a prepared step", "ReleaseCallableRequest", ReleaseCallableBody
    ),
}
