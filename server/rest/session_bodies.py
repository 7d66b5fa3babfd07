"""Read the JSON bodies of the session calls that run no step, as pydantic models.

The models also describe the bodies in `/docs`. `server.codec.session` reads the bodies of steps.
"""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.message import Message
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

import protos as pb
from runtime.errors import InvalidArgumentError
from server.codec.json_body import parse_json, parse_large_json, type_name
from server.codec.json_parts import LARGE_BODY_BYTES
from server.codec.large.large_values import LargeText
from server.codec.proto_json import read_json_proto, read_proto
from server.codec.session.tensor_reader import decode_base64
from server.sessions.requests import CreateRequest, FolderSource, ModelSource

_GRAPH_KEYS = ("graph_def", "meta_graph_def")  # they may be large
M = TypeVar("M", bound=Message)
B = TypeVar("B", bound=BaseModel)


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CreateBody(_Body):
    """The session to create: at most one of a model, a folder, `graph_def` and `meta_graph_def`.

    If none of them is given, the session is empty.
    """

    model: StrictStr | None = Field(None, description="name of a served model")
    version: StrictInt | None = Field(None, description="of the model; the latest if absent")
    label: StrictStr | None = Field(None, description="of the model's version, e.g. `stable`")
    export_dir: StrictStr | None = Field(
        None,
        description="folder of a SavedModel under `sessions.model_folders`; it is loaded, restored "
        "and initialized for this session alone",
    )
    tags: list[StrictStr] | None = Field(
        None,
        description="of the meta graph in `export_dir`, by default `serve`; with a model they must "
        "be the loaded ones",
    )
    graph_def: StrictStr | None = Field(None, description="base64 of a serialized GraphDef")
    meta_graph_def: StrictStr | None = Field(
        None, description="base64 of a serialized MetaGraphDef; nothing is restored"
    )
    config: dict[str, Any] | None = Field(None, description="ConfigProto as JSON")
    lease_seconds: StrictFloat | None = Field(None, description="idle time until it is closed")
    name: StrictStr = Field("", description="a label for listings")


class ExtendBody(_Body):
    """Nodes to add; `graph_version`, if given, must be the current version."""

    graph_def: StrictStr = Field(description="base64 of a serialized GraphDef")
    graph_version: StrictInt | None = None


class KeepAliveBody(_Body):
    """Renews the lease; the lease gets another length if `lease_seconds` is given."""

    lease_seconds: StrictFloat | None = None


class CancelBody(_Body):
    """The step to cancel; `request_id` is the `X-Request-Id` of the request that runs it."""

    request_id: StrictStr


class PartialRunSetupBody(_Body):
    """The names of the tensors and nodes that the parts of the step will feed, fetch and run."""

    feeds: list[StrictStr] = []
    fetches: list[StrictStr] = []
    targets: list[StrictStr] = []


class MakeCallableBody(_Body):
    """CallableOptions as JSON: `feed`, `fetch`, `target`, `run_options`."""

    options: dict[str, Any]


class ReleaseCallableBody(_Body):
    """The handle of the callable to release."""

    handle: StrictInt


def read_model(body: bytes, kind: type[B]) -> B:
    """Parse a body as a pydantic model; raise InvalidArgumentError that names each invalid key."""
    return _read_model(body, kind)[0]


def _read_model(body: bytes, kind: type[B]) -> tuple[B, dict[str, LargeText]]:
    """Return the model, and the large strings that belong in it in place of empty ones."""
    texts: dict[str, LargeText] = {}
    if len(body) < LARGE_BODY_BYTES:
        value = parse_json(body)
    else:
        value = parse_large_json(body, _GRAPH_KEYS)
        if isinstance(value, dict):
            texts = {
                key: value[key] for key in _GRAPH_KEYS if isinstance(value.get(key), LargeText)
            }
            value |= dict.fromkeys(texts, "")
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"The body must be a JSON object, got {type_name(value)}")
    try:
        return kind.model_validate(value), texts
    except ValidationError as error:
        problems = [_describe(problem, kind) for problem in error.errors(include_url=False)]
        raise InvalidArgumentError("; ".join(problems)) from None


def _describe(problem: Any, kind: type[BaseModel]) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"Unknown key: {key}; known keys are {', '.join(kind.model_fields)}"
    return f"{key}: {problem['msg']}, got {problem['input']!r:.80}"


def read_create_request(content: bytes) -> CreateRequest:
    """Read the body that creates a session.

    Raises InvalidArgumentError if the body has keys that exclude each other.
    """
    body, texts = _read_model(content, CreateBody)
    return CreateRequest(
        model=_model_source(body),
        folder=_folder_source(body),
        graph_def=_read_base64_proto(
            texts.get("graph_def", body.graph_def), "graph_def", pb.GraphDef
        ),
        meta_graph_def=_read_base64_proto(
            texts.get("meta_graph_def", body.meta_graph_def), "meta_graph_def", pb.MetaGraphDef
        ),
        config=read_json_proto(body.config or {}, "config", pb.ConfigProto),
        lease_seconds=body.lease_seconds,
        name=body.name,
    )


def _model_source(body: CreateBody) -> ModelSource | None:
    if body.model is None:
        of_model = ("version", "label", *(() if body.export_dir is not None else ("tags",)))
        given = [key for key in of_model if getattr(body, key) is not None]
        if given:
            raise InvalidArgumentError(f"{', '.join(given)} needs a model")
        return None
    if body.version is not None and body.label is not None:
        raise InvalidArgumentError("Expected at most one of version and label, got both")
    tags = None if body.tags is None else tuple(body.tags)
    return ModelSource(body.model, body.version, body.label, tags)


def _folder_source(body: CreateBody) -> FolderSource | None:
    if body.export_dir is None:
        return None
    if body.tags is None:
        return FolderSource(body.export_dir)
    return FolderSource(body.export_dir, tuple(body.tags))


def _read_base64_proto(text: str | LargeText | None, key: str, kind: type[M]) -> M | None:
    if text is None:
        return None
    try:
        return read_proto(bytes(decode_base64(text)), kind)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{key}: {error.message}") from None


def read_extend_body(content: bytes) -> tuple[pb.GraphDef, int | None]:
    """Read the body that extends a session; return the graph and the expected graph version."""
    body, texts = _read_model(content, ExtendBody)
    graph_def = _read_base64_proto(texts.get("graph_def", body.graph_def), "graph_def", pb.GraphDef)
    return graph_def or pb.GraphDef(), body.graph_version


def read_callable_options(content: bytes) -> pb.CallableOptions:
    """The options of a makeCallable body."""
    options = read_model(content, MakeCallableBody).options
    return read_json_proto(options, "options", pb.CallableOptions)
