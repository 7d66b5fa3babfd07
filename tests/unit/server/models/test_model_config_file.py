"""A process that starts later has the configuration in force, whatever the file says then."""

from __future__ import annotations

import asyncio
import errno
import logging
from pathlib import Path

import pytest

from runtime.errors import FailedPreconditionError, InvalidArgumentError
from server.background.front_host import FrontHost
from server.host import KeptConfig
from server.models.manager import ModelManager
from server.models.model_config_file import ModelConfigFile
from server.models.poller import ModelPoller
from server.processes.folder_config import FolderConfig
from server.processes.host_table import HostTable
from tests.unit.server.models.fakes import FakeLoader, HandPool


def text_of(name: str, labels: str = "") -> str:
    config = f"name: '{name}' base_path: '/{name}' model_platform: 'tensorflow' {labels}"
    return f"model_config_list {{ config {{ {config} }} }}"


def names_in_force(path: Path, host: KeptConfig) -> list[str]:
    """Return the models with which a process starts now."""
    return [each.name for each in ModelConfigFile(path, host).models_in_force()]


@pytest.mark.parametrize("later", ["garbage", text_of("later"), None])
def test_a_later_process_starts_with_what_is_in_force(tmp_path: Path, later: str | None) -> None:
    path = tmp_path / "file"
    path.write_text(text_of("first"))
    assert names_in_force(path, FolderConfig(tmp_path, 0, has_folder=True)) == ["first"]
    path.unlink() if later is None else path.write_text(later)
    assert names_in_force(path, FolderConfig(tmp_path, 1, has_folder=True)) == ["first"]


def test_what_the_manager_refuses_is_not_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text(text_of("first"))
    host = FolderConfig(tmp_path, 0, has_folder=True)
    file = ModelConfigFile(path, host)
    manager = ModelManager(file.models_in_force(), FakeLoader(), HandPool())
    poller = ModelPoller(manager, -1, file, 60)

    path.write_text(text_of("second"))
    poller.reload_config_file()
    assert names_in_force(path, host) == ["second"]

    def refuse(_: object) -> None:
        raise FailedPreconditionError("Request to assign label")

    monkeypatch.setattr(manager, "reconfigure", refuse)
    path.write_text(text_of("third"))
    poller.reload_config_file()
    assert names_in_force(path, host) == ["second"]


def test_a_server_whose_file_is_broken_at_its_start_does_not_start(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("garbage")
    with pytest.raises(InvalidArgumentError, match="Invalid protobuf file"):
        names_in_force(path, FolderConfig(tmp_path, 0, has_folder=True))


def test_one_process_keeps_it_for_a_background_process(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text_of("first"))
    host = FrontHost(HostTable.create(1))
    assert names_in_force(path, host.model_config) == ["first"]
    assert not host.folder.exists()
    asyncio.run(host.make_folder())
    try:
        path.write_text("garbage")
        assert names_in_force(path, FolderConfig(host.folder, 1, has_folder=True)) == ["first"]
        host.model_config.keep(text_of("second"))
        assert names_in_force(path, FolderConfig(host.folder, 1, has_folder=True)) == ["second"]
    finally:
        host.remove_sockets()


def test_a_text_that_cannot_be_kept_is_a_line_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "file"
    path.write_text(text_of("first"))
    monkeypatch.setattr(Path, "write_text", refuse)
    with caplog.at_level(logging.WARNING):
        assert names_in_force(path, FolderConfig(tmp_path, 0, has_folder=True)) == ["first"]
    assert "No space left on device" in caplog.text
