"""Open sessions on served models.

Such a session starts from the state right after loading, not from the serving session's state.
"""

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
        """Open a session in the state right after restore and init.

        The method may block for long, so it must not be called on the event loop. Raises
        NotFoundError if the model or version is unknown, UnavailableError if it is being loaded,
        and InvalidArgumentError if the label is unknown or the tags differ from the loaded ones.
        """
        try:
            version = self.manager.acquire(source.name, source.version, source.label)
        except (NotFoundError, InvalidArgumentError):
            # A label, too, may point to a version that is being loaded.
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
