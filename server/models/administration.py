"""Administration: who may change which models are served, and the changes, for every front.

A change loads first and unloads only when everything new serves. If it fails, is cancelled or
reaches its deadline, the configuration from before holds again, and what served goes on serving.

Guarantees: used from one event loop; changes are made one after the other, on a thread of their
own, so that they take none from requests. With several processes, of one host or on the nodes of a
Ray cluster, a change holds in all of them or in none; a process that starts later makes those that
were made before.

TF: tensorflow_serving/model_servers/server_core.cc (ReloadConfig)
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import contextlib
import dataclasses
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import protos as pb
from runtime.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    UnknownError,
)
from server.access.caller import Caller, Role
from server.host import ALONE, Change, Host
from server.models.managed_models import VersionStatus
from server.models.manager import ModelManager
from server.models.model_config import ModelConfig, from_model_server_config, from_settings
from server.models.model_source import find_versions
from server.models.version_policy import EitherVersions
from server.models.version_states import ModelState
from server.settings import ModelSettings, Settings

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2  # how soon a waiting change notices that it was cancelled
Configs = Sequence[ModelConfig]
UNDO: Change = {"undo": True}  # the last change, in a process where it succeeded


class Administration:
    """The changes of the served models of one server.

    A front calls `check` with its caller before any other method.
    """

    def __init__(self, manager: ModelManager, settings: Settings, host: Host = ALONE) -> None:
        """Administer the models of all processes of `host`."""
        self._manager = manager
        self._host = host
        self._before: Configs | None = None  # the last change, until it holds everywhere
        self._turn = asyncio.Lock()  # of `apply`
        self._cancelled = threading.Event()  # of the change that is being made
        self._settings = settings.admin
        self._is_authenticated = settings.is_authenticated
        # What the operator configured may be unloaded and loaded again, wherever it is.
        self._configured = {config.name: config for config in manager.configs()}
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "administration")
        self._has_ended = threading.Event()

    def check(self, caller: Caller) -> None:
        """Raise PermissionDeniedError unless the caller may change the served models."""
        if not self._settings.enabled:
            raise PermissionDeniedError(
                "This server does not let its clients administer it: admin.enabled is false"
            )
        if self._is_authenticated:
            caller.check_role(Role.ADMIN)

    async def reload(
        self, config: pb.server_config.ModelServerConfig, timeout_seconds: float | None = None
    ) -> None:
        """Serve exactly the models of `config`; return when all its new models serve.

        Raises InvalidArgumentError if the configuration or a base path is wrong, NotFoundError if
        there are no versions, PermissionDeniedError if a base path is not under
        `admin.model_folders`, FailedPreconditionError if a label would lead to a version that does
        not serve, UnknownError with TensorFlow Serving's text if a model cannot be loaded,
        DeadlineExceededError after `timeout_seconds`, and changes nothing then.
        """
        change = {"reload": base64.b64encode(config.SerializeToString()).decode()}
        await self._change_everywhere(change, timeout_seconds)

    async def _reload(
        self, config: pb.server_config.ModelServerConfig, timeout_seconds: float | None
    ) -> None:
        if config.WhichOneof("config") != "model_config_list":
            raise InvalidArgumentError(
                "ServerModelConfig type not supported by HandleReloadConfigRequest."
                " Only ModelConfigList is currently supported"
            )
        wanted = from_model_server_config(config)
        for model in wanted:
            self._check_path(model)
        await self._change(lambda before: wanted, timeout_seconds)

    async def load(
        self, name: str, base_path: str | None = None, timeout_seconds: float | None = None
    ) -> None:
        """Serve model `name` too, or its newer versions if it is served; return when it serves.

        Without `base_path`, the model's folder is the one that was configured, or else the folder
        `name` in one of `admin.model_folders`. Raises what `reload` raises.
        """
        await self._change_everywhere({"load": name, "base_path": base_path}, timeout_seconds)

    async def _load(self, name: str, base_path: str | None, timeout_seconds: float | None) -> None:
        def added(before: Configs) -> Configs:
            config = self._config_of(name, base_path, before)
            self._check_path(config)
            return [*(each for each in before if each.name != name), config]

        await self._change(added, timeout_seconds, awaited=(name,))

    async def unload(self, name: str) -> None:
        """Serve model `name` no more; raise NotFoundError if it is not configured.

        Requests that use it now are finished first.
        """
        await self._change_everywhere({"unload": name}, None)

    async def _unload(self, name: str) -> None:
        def removed(before: Configs) -> Configs:
            if all(each.name != name for each in before):
                raise NotFoundError(f"Model {name} is not served")
            return [each for each in before if each.name != name]

        await self._change(removed, None)

    async def configure(self, models: Configs, timeout_seconds: float | None = None) -> None:
        """Serve exactly these models, as whoever runs this server wants it; raises what `reload`
        raises, apart from PermissionDeniedError.
        """
        await self._change(lambda before: models, timeout_seconds)

    def shutdown(self) -> None:
        """End the thread; a change that waits is undone first. Not for the event loop."""
        self._has_ended.set()
        self._thread.shutdown(cancel_futures=True)

    def _config_of(self, name: str, base_path: str | None, before: Configs) -> ModelConfig:
        known = {**self._configured, **{each.name: each for each in before}}.get(name)
        if known is not None:
            return known if base_path is None else dataclasses.replace(known, base_path=base_path)
        if base_path is None:
            base_path = self._folder_of(name)
        return ModelConfig(name, base_path)

    def _folder_of(self, name: str) -> str:
        """Return the folder `name` in one of the folders for models."""
        if not name or Path(name).name != name:
            raise InvalidArgumentError(f"{name!r:.80} is not the name of a folder")
        for folder in self._settings.model_folders:
            path = Path(folder, name)
            if path.is_dir():
                return str(path)
        raise NotFoundError(f"No folder of admin.model_folders has a model {name}")

    def _check_path(self, model: ModelConfig) -> None:
        """Raise PermissionDeniedError unless the base path is allowed.

        Symbolic links are followed, so that none leads out of the folders.
        """
        path = Path(model.base_path).resolve()
        configured = (Path(each.base_path) for each in self._configured.values())
        folders = map(Path, self._settings.model_folders)
        if any(path == each.resolve() for each in configured) or any(
            path.is_relative_to(folder.resolve()) for folder in folders
        ):
            return
        raise PermissionDeniedError(
            f"The base path of model {model.name} is not under a folder of admin.model_folders"
        )

    # --- changes ------------------------------------------------------------------------------

    async def set_label(self, name: str, label: str, version: int | None) -> None:
        """Let a label lead to a version that serves, or remove it with None.

        Raises NotFoundError if the model is not configured or the version does not serve.
        """
        await self._change_everywhere({"label": label, "model": name, "version": version}, None)

    async def _set_label(self, name: str, label: str, version: int | None) -> None:
        def labelled(before: Configs) -> Configs:
            config = next((each for each in before if each.name == name), None)
            if config is None:
                raise NotFoundError(f"Model {name} is not served")
            labels = {key: value for key, value in config.labels.items() if key != label}
            if version is not None:
                serving = [
                    each.version for each in self._manager.available_versions() if each.name == name
                ]
                if version not in serving:
                    raise NotFoundError(
                        f"Version {version} of model {name} does not serve; "
                        f"{', '.join(map(str, serving)) or 'none'} does"
                    )
                labels[label] = version
            new = dataclasses.replace(config, labels=labels)
            return [new if each is config else each for each in before]

        await self._change(labelled, None)

    async def _change_everywhere(self, change: Change, timeout_seconds: float | None) -> None:
        """Make a change in this process, then in the others; in none if one of them fails."""
        async with self._host.change_turn():
            await self.apply(change, timeout_seconds)
            try:
                await self._host.tell(change, timeout_seconds)
            except BaseException:
                await self.apply(UNDO)
                with contextlib.suppress(OpError):
                    await self._host.tell(UNDO)
                raise
            self._host.record(change)

    async def apply(self, change: Change, timeout_seconds: float | None = None) -> None:
        """Make a change in this process only; raises what the method of the change raises.

        `UNDO` cancels one that is still being made, whose call raises CancelledError then.
        """
        if change == UNDO:
            self._cancelled.set()
        async with self._turn:
            self._cancelled = threading.Event()
            await self._apply(change, timeout_seconds)

    async def _apply(self, change: Change, timeout_seconds: float | None) -> None:
        last, self._before = self._before, None
        before = self._manager.configs()
        match change:
            case {"reload": str(text)}:
                config = pb.server_config.ModelServerConfig.FromString(base64.b64decode(text))
                await self._reload(config, timeout_seconds)
            case {"load": str(name), "base_path": base_path}:
                await self._load(name, base_path, timeout_seconds)
            case {"unload": str(name)}:
                await self._unload(name)
            case {"configure": list(models)}:
                configs = from_settings([ModelSettings(**each) for each in models])
                await self.configure(configs, timeout_seconds)
                self._configured = {config.name: config for config in configs}
            case {"label": str(label), "model": str(name), "version": version}:
                await self._set_label(name, label, version)
            case {"undo": True}:
                if last is not None:
                    await asyncio.to_thread(self._restore, last)
                return
            case _:
                raise InvalidArgumentError(f"Unknown change of the models: {change!r:.200}")
        self._before = before

    async def _change(
        self,
        change: Callable[[Configs], Configs],
        timeout_seconds: float | None,
        awaited: Iterable[str] = (),
    ) -> None:
        """Configure `change(the current configuration)`, and wait for new and `awaited` models.

        Raises the error, or the cancellation, after the old configuration holds again.
        """
        cancelled = self._cancelled
        deadline = math.inf if timeout_seconds is None else time.monotonic() + timeout_seconds
        events = (cancelled, self._has_ended)
        made = _Change(self._manager, change, frozenset(awaited), deadline, events)
        try:
            making = asyncio.get_running_loop().run_in_executor(self._thread, made.make)
        except RuntimeError as error:
            raise FailedPreconditionError("The server ends and changes no more models") from error
        try:
            await asyncio.shield(making)
        except asyncio.CancelledError:
            cancelled.set()
            before = await _outcome(making)
            if before is not None:  # it was made nevertheless
                await asyncio.to_thread(self._restore, before)
            raise

    def _restore(self, configs: Configs) -> None:
        self._manager.reconfigure(configs, is_restored=True)


@dataclasses.dataclass(frozen=True, slots=True)
class _Change:
    """One change; `deadline` is an instant of `time.monotonic()`."""

    manager: ModelManager
    change: Callable[[Configs], Configs]
    awaited: frozenset[str]
    deadline: float
    cancelled: tuple[threading.Event, ...]  # any of them cancels the change

    def make(self) -> Configs:
        """Make the change, and return the configuration from before.

        If it fails, undo it and raise the error.
        """
        self._check_time()
        manager, before = self.manager, self.manager.configs()
        wanted = list(self.change(before))
        old = {config.name: config for config in before}
        new = [each for each in wanted if old.get(each.name) != each or each.name in self.awaited]
        for config in new:
            check_versions(config)
        try:
            if new:
                manager.reconfigure(_both(before, wanted))
                self._wait(new)
            manager.reconfigure(wanted)
        except BaseException:
            _log.warning("The models stay as they were, because a change of them failed")
            manager.reconfigure(before, is_restored=True)
            raise
        return before

    def _wait(self, new: Configs) -> None:
        """Wait until the wanted versions of the new models serve; raise if one does not."""
        names = [config.name for config in new]
        while not self.manager.wait_until(lambda: self._is_over(names), _LOOK_SECONDS):
            self._check_time()
        failures = {name: _failures(self.manager.known_statuses(name)) for name in names}
        failed = [(name, status) for name, each in failures.items() for status in each]
        if failed:
            texts = "".join(
                f"{{{{name: {name} version: {status.version}}} due to error: "
                f"{_shown(status.error)}}}, "
                for name, status in failed
            )
            raise UnknownError(f"{len(failed)} model(s) did not become available: {{{texts}}}")

    def _is_over(self, names: Iterable[str]) -> bool:
        statuses = [
            status
            for name in names
            for status in self.manager.known_statuses(name)
            if status.is_wanted
        ]
        return bool(_failures(statuses)) or all(
            status.state is ModelState.AVAILABLE for status in statuses
        )

    def _check_time(self) -> None:
        if any(event.is_set() for event in self.cancelled):
            raise CancelledError("The change of the models was cancelled")
        if time.monotonic() >= self.deadline:
            raise DeadlineExceededError("The models did not become available before the deadline")


async def _outcome(making: asyncio.Future[Configs]) -> Configs | None:
    """Wait until a change has ended; return what held before, or None if it was not made.

    The caller has been cancelled; that it is cancelled again changes nothing.
    """
    while not making.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait((making,))
    return None if making.cancelled() or making.exception() is not None else making.result()


def _both(before: Configs, wanted: Configs) -> list[ModelConfig]:
    """Return the models of both configurations, with the labels that there are already."""
    old = {config.name: config for config in before}
    both = {config.name: config for config in before}
    for config in wanted:
        known = old.get(config.name)
        if known is None:
            both[config.name] = dataclasses.replace(config, labels={})
        elif known.base_path == config.base_path:
            policy = EitherVersions(known.policy, config.policy)
            both[config.name] = dataclasses.replace(config, policy=policy, labels=known.labels)
        else:
            both[config.name] = dataclasses.replace(config, labels=known.labels)
    return list(both.values())


def check_versions(config: ModelConfig) -> None:
    """Raise NotFoundError if the base path has no version that the policy chooses."""
    present = find_versions(config.name, config.base_path)
    if not config.policy.choose(present):
        raise NotFoundError(
            f"No versions of servable {config.name} found under base path {config.base_path}"
        )


def _failures(statuses: Iterable[VersionStatus]) -> list[VersionStatus]:
    return [status for status in statuses if status.has_failed]


def _shown(error: OpError | None) -> str:
    return "" if error is None else f"{error.code.name}: {error.message}"
