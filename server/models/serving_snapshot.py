"""The versions that serve: an immutable snapshot, which requests read without a lock.

TF: tensorflow_serving/core/basic_manager.cc (ServingMap), model_servers/server_core.cc (labels)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from runtime.errors import InvalidArgumentError, NotFoundError
from server.models.model_version import ModelVersion


@dataclasses.dataclass(frozen=True, slots=True)
class ServedModel:
    """The available versions of one model, and its labels."""

    latest: ModelVersion | None
    versions: Mapping[int, ModelVersion]
    labels: Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class ServingSnapshot:
    """The configured models by name, as they were at one instant."""

    models: Mapping[str, ServedModel] = dataclasses.field(default_factory=dict)

    def find(self, name: str, version: int | None = None, label: str | None = None) -> ModelVersion:
        """Return the version that a request means, by default the latest available one.

        Raises NotFoundError `Servable not found for request: …`, and InvalidArgumentError if the
        label is unknown or if both `version` and `label` are given.
        """
        model = self.models.get(name)
        if label is not None:
            if version is not None:
                raise InvalidArgumentError(
                    f"Both model version ({version}) and model version label ({label}) "
                    "cannot be supplied."
                )
            version = None if model is None else model.labels.get(label)
            if version is None:
                raise InvalidArgumentError(f"Unrecognized servable version label: {label}")
        if version is None:
            found = None if model is None else model.latest
            request = f"Latest({name})"
        else:
            found = None if model is None else model.versions.get(version)
            request = f"Specific({name}, {version})"
        if found is None:
            raise NotFoundError(f"Servable not found for request: {request}")
        return found


class ServingTable:
    """The current snapshot, which only the model manager replaces; reading takes no lock."""

    def __init__(self) -> None:
        self.snapshot = ServingSnapshot()

    def find(self, name: str, version: int | None = None, label: str | None = None) -> ModelVersion:
        """Return the available version that a request means; see `ServingSnapshot.find`."""
        return self.snapshot.find(name, version, label)

    def acquire(
        self, name: str, version: int | None = None, label: str | None = None
    ) -> ModelVersion:
        """Return the same version as `find`, which is not closed until its `release` is called."""
        while True:
            found = self.snapshot.find(name, version, label)
            if found.acquire():
                return found

    def model(self, name: str) -> ServedModel | None:
        """Return a configured model; None if there is none of this name."""
        return self.snapshot.models.get(name)

    def is_configured(self, name: str) -> bool:
        """Return whether `name` is the name of a configured model."""
        return name in self.snapshot.models
