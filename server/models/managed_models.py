"""ManagedModels: the models of a manager, and the states of their versions.

Guarantees: thread-safe; every method but `wait_until` and `wait_until_settled` returns at once.

Locks: `changed` guards all attributes here, and those of each `ManagedModel`. Whoever changes a
state holds it, and notifies it.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence

from runtime.errors import NotFoundError, OpError, UnavailableError
from server.models.model_config import ModelConfig
from server.models.model_version import ModelVersion
from server.models.version_states import ModelState, VersionRecord, next_action

_PENDING = (ModelState.START, ModelState.LOADING)


@dataclasses.dataclass(frozen=True, slots=True)
class VersionStatus:
    """The state of one version, as the status API reports it."""

    version: int
    state: ModelState
    error: OpError | None
    is_wanted: bool = True  # by the version policy
    has_failed: bool = False  # it is wanted, the last load failed, and no other is under way


class ManagedModel:
    """A configured model, or one that is no longer configured but has known versions."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.is_configured = True
        self.was_polled = False
        self.records: dict[int, VersionRecord] = {}
        self.loaded: dict[int, ModelVersion] = {}
        self._astray: dict[str, int] = {}  # labels that `labels_gone_astray` has returned

    @property
    def is_settled(self) -> bool:
        """Whether the model has been polled and nothing remains to be loaded or unloaded."""
        return (
            self.was_polled
            and next_action(self.records.values()) is None
            and not any(
                record.state in _PENDING and record.retry_at is None
                for record in self.records.values()
            )
        )

    def labels_gone_astray(self) -> dict[str, int]:
        """Return the labels whose versions do not serve now that the model is settled.

        A label is returned once, until its version serves or it leads to another one.
        """
        if not (self.is_configured and self.is_settled):
            return {}
        astray = {
            label: version
            for label, version in self.config.labels.items()
            if version not in self.loaded
        }
        known, self._astray = self._astray, astray
        return {label: astray[label] for label in astray if known.get(label) != astray[label]}


class ManagedModels:
    """The models by name: those that are configured, and those that were."""

    def __init__(self, models: Sequence[ModelConfig]) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.by_name = {config.name: ManagedModel(config) for config in models}

    def check_not_loading(self, name: str, version: int | None = None) -> None:
        """Raise UnavailableError if the model, or the given version, is still being loaded."""
        with self.changed:
            model = self.by_name.get(name)
            records = [] if model is None else list(model.records.values())
            was_polled = model is None or model.was_polled
        pending = [
            record.version
            for record in records
            if record.state in _PENDING and version in (None, record.version)
        ]
        if pending or not was_polled:
            what = f"version {pending[0]} of model {name}" if pending else f"model {name}"
            raise UnavailableError(f"Still loading {what}; try again soon")

    def statuses(self, name: str, version: int | None = None) -> list[VersionStatus]:
        """Return the states of every version ever seen, the highest first, or of `version` alone.

        Raises NotFoundError with TensorFlow Serving's text if there is no such version.
        """
        known = self.known_statuses(name)
        if version is not None:
            known = [status for status in known if status.version == version]
            if not known:
                raise NotFoundError(f"Could not find version {version} of model {name}")
        if not known:
            raise NotFoundError(f"Could not find any versions of model {name}")
        return known

    def known_statuses(self, name: str) -> list[VersionStatus]:
        """Return the same as `statuses`, but an empty list if the model has no known versions."""
        with self.changed:
            model = self.by_name.get(name)
            records = {} if model is None else model.records
            return [
                VersionStatus(
                    record.version, record.state, record.error, record.is_wanted, record.has_failed
                )
                for _, record in sorted(records.items(), reverse=True)
            ]

    def load_progress(self, name: str, version: int) -> dict[str, object] | None:
        """Return how far the load of a version is (`LoadLog.progress`); None if none runs."""
        with self.changed:
            model = self.by_name.get(name)
            record = None if model is None else model.records.get(version)
            progress = None if record is None else record.progress
        return None if progress is None else progress()

    def model_names(self) -> list[str]:
        """Return the names of the configured models, in the order of the configuration."""
        with self.changed:
            return [name for name, model in self.by_name.items() if model.is_configured]

    def known_names(self) -> list[str]:
        """Return the names of all models that are or were configured."""
        with self.changed:
            return list(self.by_name)

    def configs(self) -> list[ModelConfig]:
        """Return the configured models, in the order of the configuration."""
        with self.changed:
            return [model.config for model in self.by_name.values() if model.is_configured]

    def next_retry_at(self) -> float | None:
        """Return the earliest retry time of a failed load; None if no retry is planned.

        The time is an instant of the manager's clock.
        """
        with self.changed:
            planned = [
                record.retry_at
                for model in self.by_name.values()
                for record in model.records.values()
                if record.retry_at is not None
            ]
        return min(planned, default=None)

    def wait_until_settled(self, timeout_seconds: float | None = None) -> bool:
        """Wait until every model has been polled and nothing remains to be loaded or unloaded.

        Returns False if `timeout_seconds` pass first. The method blocks, so it must not be called
        on the event loop.
        """
        with self.changed:
            return self.changed.wait_for(self._is_settled, timeout_seconds)

    def wait_until(self, is_reached: Callable[[], bool], timeout_seconds: float) -> bool:
        """Wait until `is_reached()`, which is called at every change of a state; it must not block.

        Returns False if `timeout_seconds` pass first. Not for the event loop, as above.
        """
        with self.changed:
            return self.changed.wait_for(is_reached, timeout_seconds)

    def configured(self) -> list[ManagedModel]:
        """Return the models that are configured now."""
        with self.changed:
            return [model for model in self.by_name.values() if model.is_configured]

    def _is_settled(self) -> bool:
        return all(model.is_settled for model in self.by_name.values() if model.is_configured)
