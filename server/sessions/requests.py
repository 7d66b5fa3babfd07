"""The requests of the session service, decoded and independent of the transport."""

from __future__ import annotations

import dataclasses

import protos as pb
from runtime.api import (
    DirectSession,
    ResourceManager,
    RuntimeSession,
)
from runtime.errors import InternalError, InvalidArgumentError
from server.access.caller import LOCAL, Caller


@dataclasses.dataclass(frozen=True, slots=True)
class ModelSource:
    """The model version to open a session on.

    If `version` and `label` are None, it is the latest version. If `tags` is None, any tags are
    accepted.
    """

    name: str
    version: int | None = None
    label: str | None = None
    tags: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class FolderSource:
    """The SavedModel to open a session on: its folder, and the tags of one of its meta graphs."""

    export_dir: str
    tags: tuple[str, ...] = ("serve",)


@dataclasses.dataclass(frozen=True, slots=True)
class OpenedModel:
    """A session on version `version` of a model, in the state right after restore and init.

    The version is 0 if the model is not a served one.
    """

    session: DirectSession
    version: int
    shared_weights: bool


@dataclasses.dataclass(frozen=True, slots=True)
class CreateRequest:
    """A session to open; at most one of its first four attributes may be given."""

    model: ModelSource | None = None
    folder: FolderSource | None = None
    graph_def: pb.GraphDef | None = None
    meta_graph_def: pb.MetaGraphDef | None = None
    config: pb.ConfigProto = dataclasses.field(default_factory=pb.ConfigProto)
    lease_seconds: float | None = None
    name: str = ""
    # A resource manager that several sessions share, as in the master service; if it is None, the
    # session has its own.
    resources: ResourceManager | None = None
    caller: Caller = LOCAL  # whose session it will be

    @property
    def brings_graph(self) -> bool:
        """Whether the session has a graph of the caller's."""
        return self.graph_def is not None or self.meta_graph_def is not None

    def __post_init__(self) -> None:
        sources = {
            "model": self.model,
            "export_dir": self.folder,
            "graph_def": self.graph_def,
            "meta_graph_def": self.meta_graph_def,
        }
        given = [key for key, value in sources.items() if value is not None]
        if len(given) > 1:
            raise InvalidArgumentError(
                f"Expected at most one of {', '.join(sources)}; got {', '.join(given)}"
            )


def as_direct_session(session: RuntimeSession) -> DirectSession:
    """Return `session` as a DirectSession; raise InternalError if it is none.

    All sessions of the server are DirectSessions.
    """
    if not isinstance(session, DirectSession):
        raise InternalError(f"Expected a DirectSession, got a {type(session).__name__}")
    return session
