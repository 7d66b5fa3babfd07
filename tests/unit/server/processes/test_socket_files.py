"""The files of the processes' sockets: whose they are, and that only those of one are removed."""

from __future__ import annotations

import pathlib

import pytest

from server.processes.session_ids import Place
from server.processes.socket_files import (
    folder_for_sockets,
    http_socket,
    moved_socket,
    remove_sockets_of,
)


def test_only_the_sockets_of_the_process_that_has_ended_are_removed(
    tmp_path: pathlib.Path,
) -> None:
    ended, others = Place(1, 1), (Place(0, 1), Place(1, 0), Place(1, 2), Place(1, 11), Place(11, 1))
    kept = {tmp_path / "changes.lock", tmp_path / "models.config.1"}
    for place in (ended, *others):
        paths = {each(tmp_path, place) for each in (http_socket, moved_socket)}
        assert len(paths) == 2
        kept |= set() if place == ended else paths
        for path in paths | kept:
            path.touch()
    remove_sockets_of(tmp_path, ended)
    assert set(tmp_path.iterdir()) == kept
    remove_sockets_of(tmp_path, ended)  # they need not be there
    remove_sockets_of(tmp_path / "none", ended)


def test_without_any_folder_for_temporary_files_a_server_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What cannot be written there is not written: the server of one process has no files."""

    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", none)
    assert folder_for_sockets() == pathlib.Path("/tmp")


@pytest.mark.parametrize(("length", "is_used"), [(60, True), (61, False)])
def test_a_socket_s_path_is_not_too_long(
    length: int, is_used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = "/" + "t" * (length - 1)
    monkeypatch.setattr("tempfile.gettempdir", lambda: folder)
    assert folder_for_sockets() == pathlib.Path(folder if is_used else "/tmp")
