"""Loading and unloading models, and who may: a manager whose loads run at once."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnknownError,
)
from server.access.caller import Caller, Role
from server.host import Change, Host
from server.models.administration import UNDO, Administration
from server.models.manager import ModelManager
from server.models.manager_options import ManagerOptions
from server.models.model_config import ModelConfig
from server.models.version_policy import AllVersions, EitherVersions, SpecificVersions
from server.settings import AdminSettings, Settings
from server.settings_sections.access import AccessSettings
from tests.unit.server.models.fakes import FakeLoader, make_versions


class ImmediatePool:
    """Runs each task at once; `is_held` keeps them."""

    def __init__(self) -> None:
        self.is_held = False
        self.held = threading.Event()

    def schedule(self, task: Callable[[], object]) -> None:
        if self.is_held:
            self.held.set()
        else:
            task()


class Office:
    """Models `served` (configured) in one folder, `more` in the folder for models."""

    def __init__(self, base: Path, **admin: Any) -> None:
        self.folder = base / "models"
        make_versions(base / "elsewhere" / "served", 1)
        make_versions(self.folder / "more", 1, 2)
        self.pool, self.loader = ImmediatePool(), FakeLoader()
        configured = ModelConfig("served", str(base / "elsewhere" / "served"))
        self.manager = ModelManager(
            [configured], self.loader, self.pool, ManagerOptions(load_retry_seconds=1e6)
        )
        self.manager.poll()
        settings = AdminSettings(**{"enabled": True, "model_folders": (str(self.folder),)} | admin)
        self.administration = Administration(self.manager, Settings(admin=settings))

    def do(self, change: Coroutine[Any, Any, None]) -> None:
        asyncio.run(change)

    def served(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {name: [] for name in self.manager.model_names()}
        for version in self.manager.available_versions():
            found[version.name].append(version.version)
        return found


def test_a_model_of_the_folder_is_loaded_and_unloaded_by_its_name(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.do(office.administration.load("more"))
    assert office.served() == {"served": [1], "more": [2]}
    office.do(office.administration.unload("more"))
    assert office.served() == {"served": [1]}
    assert office.loader.bundles[2].session.is_closed


def test_what_the_operator_configured_is_loaded_again_wherever_it_is(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.do(office.administration.unload("served"))
    assert office.served() == {}
    office.do(office.administration.load("served"))
    assert office.served() == {"served": [1]}


def test_loading_what_serves_finds_newer_versions(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.do(office.administration.load("served"))
    assert office.served() == {"served": [1]}
    make_versions(tmp_path / "elsewhere" / "served", 3)
    office.do(office.administration.load("served"))
    assert office.served() == {"served": [3]}


def test_a_base_path_may_be_given(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.do(office.administration.load("renamed", str(office.folder / "more")))
    assert office.served() == {"served": [1], "renamed": [2]}
    with pytest.raises(PermissionDeniedError, match=r"not under a folder of admin\.model_folders"):
        office.do(office.administration.load("x", str(tmp_path)))


def test_what_cannot_be_loaded_or_unloaded(tmp_path: Path) -> None:
    office = Office(tmp_path)
    administration = office.administration
    with pytest.raises(NotFoundError, match=r"No folder of admin\.model_folders has a model nope"):
        office.do(administration.load("nope"))
    for name in ("", "../elsewhere/served", "/etc", ".."):
        with pytest.raises((InvalidArgumentError, PermissionDeniedError)):
            office.do(administration.load(name))
    with pytest.raises(NotFoundError, match="Model nope is not served"):
        office.do(administration.unload("nope"))
    office.loader.failures[2] = [InvalidArgumentError("bad weights")]
    with pytest.raises(UnknownError, match="version: 2} due to error: INVALID_ARGUMENT: bad wei"):
        office.do(administration.load("more"))
    assert office.served() == {"served": [1]}
    shutil.rmtree(office.folder / "more" / "1")
    shutil.rmtree(office.folder / "more" / "2")
    with pytest.raises(NotFoundError, match="No versions of servable more found"):
        office.do(administration.load("more"))


def test_a_deadline_undoes_the_change(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.pool.is_held = True
    with pytest.raises(DeadlineExceededError, match="did not become available"):
        office.do(office.administration.load("more", timeout_seconds=0.01))
    assert office.served() == {"served": [1]}


def test_the_end_of_the_server_undoes_a_change_and_refuses_others(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.pool.is_held = True

    async def change() -> None:
        waiting = asyncio.create_task(office.administration.load("more"))
        await asyncio.to_thread(office.pool.held.wait, 30)
        await asyncio.to_thread(office.administration.shutdown)
        with pytest.raises(CancelledError, match="The change of the models was cancelled"):
            await waiting
        with pytest.raises(FailedPreconditionError, match="The server ends"):
            await office.administration.load("more")

    asyncio.run(change())
    assert office.served() == {"served": [1]}


def test_an_undo_cancels_the_change_that_is_being_made(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.pool.is_held = True

    async def change() -> None:
        apply = office.administration.apply
        making = asyncio.create_task(apply({"load": "more", "base_path": None}))
        await asyncio.to_thread(office.pool.held.wait, 30)
        await apply(UNDO)
        with pytest.raises(CancelledError, match="The change of the models was cancelled"):
            await making
        assert office.served() == {"served": [1]}
        await apply({"unload": "served"})  # the next one is not cancelled

    asyncio.run(change())
    assert office.served() == {}


@pytest.mark.parametrize("is_held", [True, False], ids=["while it waits", "while it is made"])
def test_a_cancelled_change_is_undone_when_its_call_ends(is_held: bool, tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.pool.is_held = is_held
    is_made, go_on = threading.Event(), threading.Event()
    reconfigure = office.manager.reconfigure

    def slowly(configs: Sequence[ModelConfig], *, is_restored: bool = False) -> None:
        reconfigure(configs, is_restored=is_restored)
        if not is_restored:
            is_made.set()
            go_on.wait(30)

    office.manager.reconfigure = slowly  # type: ignore[method-assign] # as if it took long

    async def change() -> None:
        making = asyncio.create_task(office.administration.load("more"))
        await asyncio.to_thread(is_made.wait, 30)
        for _ in range(2):  # the second one changes nothing
            making.cancel()
            await asyncio.sleep(0.01)
        assert not making.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await making
        assert office.served() == {"served": [1]}

    asyncio.run(change())


def test_who_may(tmp_path: Path) -> None:
    anyone, admin = Caller(roles=frozenset({Role.PREDICT})), Caller(roles=frozenset({Role.ADMIN}))
    off = Office(tmp_path / "off", enabled=False).administration
    for caller in (anyone, admin):
        with pytest.raises(PermissionDeniedError, match=r"admin\.enabled is false"):
            off.check(caller)
    office = Office(tmp_path / "on")
    office.administration.check(anyone)
    access = AccessSettings(keys_file="keys.yaml")
    settings = Settings(admin=AdminSettings(enabled=True), access=access)
    with_keys = Administration(office.manager, settings)
    with_keys.check(admin)
    with pytest.raises(PermissionDeniedError, match="This call requires the role admin"):
        with_keys.check(anyone)


def test_while_a_policy_changes_the_versions_of_both_are_served() -> None:
    policy = EitherVersions(SpecificVersions((1,)), SpecificVersions((3,)))
    assert policy.choose([1, 2, 3]) == {1, 3}
    assert EitherVersions(AllVersions(), SpecificVersions((9,))).choose([1, 2]) == {1, 2}


class OtherProcesses(Host):
    """Another process, which makes the changes too, or refuses some."""

    def __init__(self, other: Office) -> None:
        self.other = other
        self.recorded: list[Change] = []
        self.refused: str | None = None

    async def tell(self, change: Change, timeout_seconds: float | None = None) -> None:
        await self.other.administration.apply(change, timeout_seconds)
        if change.get(self.refused or ""):  # a third process
            raise UnknownError("no memory")

    def record(self, change: Change) -> None:
        self.recorded.append(change)


def test_a_change_holds_in_all_processes_or_in_none(tmp_path: Path) -> None:
    office, other = Office(tmp_path / "one"), Office(tmp_path / "other")
    host = OtherProcesses(other)
    settings = Settings(admin=AdminSettings(enabled=True, model_folders=(str(office.folder),)))
    administration = Administration(office.manager, settings, host)

    def everywhere() -> list[dict[str, list[int]]]:
        return [each.served() for each in (office, other)]

    office.do(administration.load("more"))
    office.do(administration.set_label("more", "stable", 2))
    assert everywhere() == [{"served": [1], "more": [2]}] * 2
    assert [config.labels for config in other.manager.configs()] == [{}, {"stable": 2}]
    for refused, change in (
        ("unload", lambda: administration.unload("served")),
        ("label", lambda: administration.set_label("more", "stable", None)),
    ):
        host.refused = refused
        with pytest.raises(UnknownError, match="no memory"):
            office.do(change())
    assert everywhere() == [{"served": [1], "more": [2]}] * 2
    assert [config.labels for config in office.manager.configs()] == [{}, {"stable": 2}]
    assert [config.labels for config in other.manager.configs()] == [{}, {"stable": 2}]
    assert len(host.recorded) == 2
    with pytest.raises(NotFoundError):  # it fails here already, and nobody is told
        office.do(administration.unload("nope"))
    assert len(host.recorded) == 2


def test_an_undo_follows_one_change_only(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.do(office.administration.apply({"load": "more", "base_path": None}))
    office.do(office.administration.apply(UNDO))
    assert office.served() == {"served": [1]}
    office.do(office.administration.apply(UNDO))
    assert office.served() == {"served": [1]}
    with pytest.raises(InvalidArgumentError, match="Unknown change of the models"):
        office.do(office.administration.apply({"rename": "served"}))
