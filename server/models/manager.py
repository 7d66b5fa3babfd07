"""ModelManager: loads, serves and unloads the versions that the version policies choose.

Several versions of a model can serve at once. If another version replaces the serving one, the old
version is kept until the new one serves (see `version_states`). Loading and unloading run on
`load_pool`, whose threads have low priority, so that they do not delay requests.

Guarantees: thread-safe; `find` and `acquire` take no lock of the manager and never wait; a version
is closed only after its last request has ended.

TF: tensorflow_serving/core/aspired_versions_manager.cc, model_servers/server_core.cc
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from runtime.api import model_objects
from runtime.errors import OpError, ResourceExhaustedError, UnavailableError, as_op_error
from server.models.freed_memory import keep_from_collector, model_was_closed
from server.models.load_log import LoadLog
from server.models.managed_models import ManagedModel, ManagedModels
from server.models.manager_options import Loader, LoadPool, ManagerOptions
from server.models.model_config import ModelConfig
from server.models.model_source import find_versions, version_files
from server.models.model_version import ModelVersion
from server.models.repeated_messages import RepeatedMessages
from server.models.serving_snapshot import ServedModel, ServingSnapshot, ServingTable
from server.models.version_labels import check_labels, unavailable_label_text
from server.models.version_states import Action, ModelState, VersionRecord, next_action, want
from server.models.warmup import warm_up

_log = logging.getLogger(__name__)

_FULL_QUEUE_SECONDS = 1.0  # delay of a load that found the pool's queue full


class ModelManager:
    """The models of one server; nothing is loaded before the first `poll`."""

    def __init__(
        self,
        models: Sequence[ModelConfig],
        loader: Loader,
        load_pool: LoadPool,
        options: ManagerOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loader = loader
        self._load_pool = load_pool
        self._options = options or ManagerOptions()
        self._clock = clock
        self._models = ManagedModels(models)
        # Guards the models and every attribute below except _serving; notified at each change.
        self._changed = self._models.changed
        self._is_stopped = False
        self._messages = RepeatedMessages(_log)  # of polls, which may not overlap
        self._serving = ServingTable()
        # Called, with the lock held, when what serves has changed and no status shows it yet.
        self.on_published: Callable[[], object] = int
        # Finding a version takes no lock of the manager and never waits.
        self.find = self._serving.find
        self.acquire = self._serving.acquire
        self.is_configured = self._serving.is_configured
        self.served_model = self._serving.model
        self.request_log_of = self._serving.request_log_of
        # What is reported of the models and their versions, whether they serve or not.
        self.check_not_loading = self._models.check_not_loading
        self.statuses = self._models.statuses
        self.known_statuses = self._models.known_statuses
        self.load_progress = self._models.load_progress
        self.model_names = self._models.model_names
        self.known_names = self._models.known_names
        self.configs = self._models.configs
        self.next_retry_at = self._models.next_retry_at
        self.wait_until = self._models.wait_until
        self.wait_until_settled = self._models.wait_until_settled
        self._publish()

    # Methods that report what serves.

    def labels(self, name: str) -> dict[str, int]:
        """Return the version number of each label of a configured model."""
        model = self._serving.snapshot.models.get(name)
        return {} if model is None else dict(model.labels)

    def available_versions(self) -> Iterator[ModelVersion]:
        """Yield the versions that serve now."""
        for model in self._serving.snapshot.models.values():
            yield from model.versions.values()

    def digest(self) -> int:
        """Return a number that differs between processes that serve other versions or labels."""
        serving = sorted(
            (name, sorted(model.versions), sorted(model.labels.items()))
            for name, model in self._serving.snapshot.models.items()
        )
        digest = hashlib.blake2b(repr(serving).encode(), digest_size=7).digest()
        return int.from_bytes(digest)

    def not_ready(self) -> list[str]:
        """Return the names of the configured models of which no version serves.

        The server is ready if there are none.
        """
        return [
            name for name, model in self._serving.snapshot.models.items() if model.latest is None
        ]

    # Methods that change what is served.

    def poll(self) -> None:
        """List the versions on disk, and start the loads and unloads that follow from them.

        A version that failed to load is tried again if its files have changed since: it may have
        appeared before its files, or while they were being copied.
        """
        for model in self._models.configured():
            try:
                wanted = self._wanted_versions(model.config)
            except OpError as error:
                self._messages.log(model.config.name, logging.ERROR, error.message)
                wanted = None
            with self._changed:
                if wanted is not None and model.is_configured and not self._is_stopped:
                    want(model.records, wanted)
                model.was_polled = True
                self._changed.notify_all()
            self._retry_changed(model)
            self._advance(model)
            self._report_labels(model)

    def _retry_changed(self, model: ManagedModel) -> None:
        with self._changed:
            failed = [record for record in model.records.values() if record.has_failed]
        changed = [record for record in failed if version_files(record.path) != record.files]
        for record in changed:
            with self._changed:
                if not record.has_failed:  # another thread was faster
                    continue
                record.start_again()
            self._schedule_load(model, record)

    def retry_due_loads(self) -> None:
        """Retry the failed loads whose retry time has passed."""
        now = self._clock()
        for model in self._models.configured():
            with self._changed:
                due = [
                    record
                    for record in model.records.values()
                    if record.retry_at is not None and record.retry_at <= now
                ]
            for record in due:
                self._schedule_load(model, record)

    def reconfigure(self, models: Sequence[ModelConfig], *, is_restored: bool = False) -> None:
        """Serve exactly `models` from now on, and poll.

        Raises FailedPreconditionError, and changes nothing, if a label would move to a version that
        does not serve. It is not raised if the configuration `is_restored`.
        """
        with self._changed:
            for config in () if is_restored else models:
                known = self._models.by_name.get(config.name)
                if known is not None and known.was_polled:
                    check_labels(config, known.config.labels, known.loaded, self._options)
            new = {config.name: config for config in models}
            for name, model in self._models.by_name.items():
                model.is_configured = name in new
                if name in new:
                    given = new.pop(name)
                    if model.config != given:  # a file is read again each time that it is polled
                        model.config = given
                else:
                    want(model.records, {})
            self._models.by_name |= {name: ManagedModel(config) for name, config in new.items()}
            dropped = [model for model in self._models.by_name.values() if not model.is_configured]
        for model in dropped:
            self._advance(model)
        self._publish()
        self.poll()

    def stop(self) -> None:
        """Unload each version once no request uses it, and load no more."""
        with self._changed:
            self._is_stopped = True
            models = list(self._models.by_name.values())
            for model in models:
                want(model.records, {})
        for model in models:
            self._advance(model)

    # Transitions between states.

    def _wanted_versions(self, config: ModelConfig) -> dict[int, Path]:
        present = find_versions(config.name, config.base_path)
        if present:
            self._messages.over(config.name)
        else:
            self._messages.log(
                config.name,
                logging.WARNING,
                f"No versions of servable {config.name} found under base path {config.base_path}. "
                "Did you forget to name your leaf directory as a number (eg. '/1/')?",
            )
        return {version: present[version] for version in config.policy.choose(present)}

    def _publish(self) -> None:
        """Make the loaded versions visible to requests."""
        with self._changed:
            self._serving.snapshot = ServingSnapshot(
                {
                    name: ServedModel(
                        model.loaded[max(model.loaded)] if model.loaded else None,
                        dict(model.loaded),
                        model.config.labels,
                    )
                    for name, model in self._models.by_name.items()
                    if model.is_configured
                },
                {
                    name: model.config.request_log
                    for name, model in self._models.by_name.items()
                    if model.is_configured and model.config.request_log is not None
                },
            )
            self.on_published()
            self._changed.notify_all()

    def _advance(self, model: ManagedModel) -> None:
        """Start every load and unload of a model that is due; called after each change of state."""
        while True:
            with self._changed:
                step = next_action(model.records.values())
                if step is None:
                    return
                action, record = step
                if action is Action.UNLOAD:
                    record.move_to(ModelState.UNLOADING)
                    loaded = model.loaded.pop(record.version)
                    if not model.loaded:
                        model.loaded.clear()  # its table is newer than the load: `freed_memory`
                    self._publish()
            if action is Action.UNLOAD:
                _log.info("Unloading version %d of model %s", record.version, model.config.name)
                self._close_when_unused(model, record, loaded)
            elif not self._schedule_load(model, record):
                return

    def _schedule_load(self, model: ManagedModel, record: VersionRecord) -> bool:
        """Queue a load; if the pool's queue is full, plan a retry and return False."""
        with self._changed:
            if record.state is ModelState.START:
                record.move_to(ModelState.LOADING)
            elif record.retry_at is None:  # another thread was faster
                return True
            record.retry_at = None
        try:
            self._load_pool.schedule(lambda: self._load(model, record))
        except ResourceExhaustedError:
            with self._changed:
                record.retry_at = self._clock() + _FULL_QUEUE_SECONDS
            return False
        return True

    def _load(self, model: ManagedModel, record: VersionRecord) -> None:
        name = model.config.name
        record.files = version_files(record.path)
        with LoadLog(name, record.version, record.path, record.files) as log:
            record.progress = log.progress
            try:
                with model_objects:
                    loaded = self._load_version(name, record)
            except Exception as error:
                self._load_failed(model, record, error)
            else:
                with self._changed:
                    record.error = None
                    record.move_to(ModelState.AVAILABLE)
                    model.loaded[record.version] = loaded
                    self._publish()
                keep_from_collector()
                log.done()
            finally:
                record.progress = None
        self._advance(model)
        self._report_labels(model)

    def _report_labels(self, model: ManagedModel) -> None:
        """Log each label whose version does not serve once the model is settled.

        TensorFlow Serving does not start then. This server answers before its models are loaded,
        and so before it can know; requests by the label get NOT_FOUND.
        """
        if self._options.allow_labels_for_unavailable:
            return
        with self._changed:
            astray = model.labels_gone_astray()
        for label, version in astray.items():
            text = unavailable_label_text(model.config.name, version)
            _log.error("Label %s: %s", label, text)

    def _load_version(self, name: str, record: VersionRecord) -> ModelVersion:
        options = self._options
        with options.metrics.load(record.path):
            bundle = self._loader(name, record.version, record.path)
        try:
            loaded = ModelVersion(name, record.version, bundle, options.check_method_names)
            if options.batches_of is not None:
                loaded.set_batches(options.batches_of(loaded, record.path))
            if options.warmup:
                warm_up(
                    loaded, record.path, options.warmup_seconds, options.warmup_iterations,
                    options.metrics,
                )  # fmt: skip
            if version_files(record.path) != record.files:  # a part may be old and a part new
                raise UnavailableError(f"Files in {record.path} changed while they were loaded")
        except BaseException:
            bundle.session.close()
            raise
        return loaded

    def _load_failed(self, model: ManagedModel, record: VersionRecord, error: Exception) -> None:
        if not isinstance(error, OpError):
            _log.error("Unexpected error while loading", exc_info=error)
            error = as_op_error(error)
        with self._changed:
            record.attempts += 1
            record.error = error
            is_last = record.attempts > self._options.max_load_retries or not record.is_wanted
            if is_last:
                record.move_to(ModelState.END)
            else:
                record.retry_at = self._clock() + self._options.load_retry_seconds
            self._changed.notify_all()
        # To remove a version while it is loaded is no fault.
        level = logging.ERROR if record.path.is_dir() else logging.WARNING
        _log.log(
            level,
            "Loading version %d of model %s from %s failed%s: %s",
            record.version, model.config.name, record.path,
            "" if is_last else f" (again in {self._options.load_retry_seconds:g} s)",
            error.message,
        )  # fmt: skip

    def _close_when_unused(
        self, model: ManagedModel, record: VersionRecord, loaded: ModelVersion
    ) -> None:
        def close() -> None:
            loaded.close()
            model_was_closed()
            with self._changed:
                record.end_unloading()
                self._changed.notify_all()
            _log.info("Unloaded version %d of model %s", record.version, model.config.name)
            self._advance(model)

        def schedule_close() -> None:
            try:
                self._load_pool.schedule(close)
            except ResourceExhaustedError:  # the queue is full, but the close must still happen
                threading.Thread(target=close, name="unload", daemon=True).start()

        loaded.close_when_unused(schedule_close)
