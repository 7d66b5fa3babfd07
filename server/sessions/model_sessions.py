"""Open sessions on served models, from the version's template and never from its state."""

from __future__ import annotations

import dataclasses

from runtime.api import SessionOptions
from runtime.errors import InvalidArgumentError, NotFoundError
from server.models.manager import ModelManager
from server.models.model_version import ModelVersion
from server.sessions.requests import ModelSource, OpenedModel, as_direct_session


@dataclasses.dataclass(frozen=True, slots=True)
class ModelSessions:
    """Looks up a version and opens a session on it."""

    manager: ModelManager

    def open(self, source: ModelSource, options: SessionOptions) -> OpenedModel:
        """A session in the state right after restore and init. Blocks: not for the event loop.

        Raises NotFoundError for an unknown model or version, UnavailableError for one that is
        being loaded, InvalidArgumentError for an unknown label or other tags than the loaded.
        """
        try:
            version = self.manager.acquire(source.name, source.version, source.label)
        except (NotFoundError, InvalidArgumentError):
            # Also for a label, which may point to a version that is loading.
            self.manager.check_not_loading(source.name, source.version)
            raise
        try:
            _check_tags(source, version)
            session, shared_weights = version.bundle.open_session(options)
        finally:
            version.release()
        return OpenedModel(as_direct_session(session), version.version, shared_weights)


def _check_tags(source: ModelSource, version: ModelVersion) -> None:
    loaded = set(version.bundle.meta_graph_def.meta_info_def.tags)
    if source.tags is not None and set(source.tags) != loaded:
        raise InvalidArgumentError(
            f"Model {source.name} is loaded with the tags {sorted(loaded)}, "
            f"got {sorted(source.tags)}"
        )
