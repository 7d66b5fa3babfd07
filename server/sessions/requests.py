"""What a transport asks of the session service: plain values, decoded and named."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import protos as pb
from runtime.api import (
    CancellationManager,
    DirectSession,
    ResourceManager,
    RuntimeSession,
    parse_tensor_name,
)
from runtime.errors import InternalError, InvalidArgumentError


@dataclasses.dataclass(frozen=True, slots=True)
class ModelSource:
    """Which loaded model version to open a session on; None means the latest, the loaded tags."""

    name: str
    version: int | None = None
    label: str | None = None
    tags: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class OpenedModel:
    """What a model source gives: a session at the state right after restore and init."""

    session: DirectSession
    version: int
    shared_weights: bool


@dataclasses.dataclass(frozen=True, slots=True)
class CreateRequest:
    """A session to open; at most one of `model`, `graph_def` and `meta_graph_def`."""

    model: ModelSource | None = None
    graph_def: pb.GraphDef | None = None
    meta_graph_def: pb.MetaGraphDef | None = None
    config: pb.ConfigProto = dataclasses.field(default_factory=pb.ConfigProto)
    lease_seconds: float | None = None
    name: str = ""
    # Shared with other sessions (the master service's rule); None: a manager of its own.
    resources: ResourceManager | None = None

    def __post_init__(self) -> None:
        sources = {
            "model": self.model,
            "graph_def": self.graph_def,
            "meta_graph_def": self.meta_graph_def,
        }
        given = [key for key, value in sources.items() if value is not None]
        if len(given) > 1:
            raise InvalidArgumentError(
                f"Expected at most one of model, graph_def, meta_graph_def; got {', '.join(given)}"
            )


@dataclasses.dataclass(frozen=True, slots=True)
class StepRequest:
    """One step. `received_at` and the deadline that follows from it are monotonic instants.

    `priority` names an entry of `priorities:` (or counts them); `pool_is_chosen` says that the
    client set `options.inter_op_thread_pool`. `timeout_ms` is the transport's (a header), used
    when `options.timeout_in_ms` is not set.
    """

    feeds: Mapping[str, Any]
    fetches: Sequence[str]
    targets: Sequence[str]
    received_at: float
    request_id: str
    cancellation: CancellationManager
    options: pb.RunOptions | None = None
    pool_is_chosen: bool = False
    priority: str | int | None = None
    timeout_ms: int | None = None
    metadata: pb.RunMetadata | None = None


def as_direct_session(session: RuntimeSession) -> DirectSession:
    """A session of target "", which the server's sessions all have; InternalError otherwise."""
    if not isinstance(session, DirectSession):
        raise InternalError(f"Expected a DirectSession, got a {type(session).__name__}")
    return session


def check_names(feeds: Sequence[str], fetches: Sequence[str]) -> None:
    """Refuse a tensor that is fed twice, or fed and fetched, however it is spelled."""
    fed = set()
    for name in feeds:
        tensor = parse_tensor_name(name)
        if tensor in fed:
            raise InvalidArgumentError(f'Endpoint "{name}" fed more than once.')
        fed.add(tensor)
    for name in fetches:
        if parse_tensor_name(name) in fed:
            raise InvalidArgumentError(f"{name} is both fed and fetched.")
