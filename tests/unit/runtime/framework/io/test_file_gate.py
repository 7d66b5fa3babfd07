"""Which files a step may touch."""

from __future__ import annotations

import pathlib

import pytest

from runtime.foundation.errors import PermissionDeniedError
from runtime.framework.io.file_gate import AllowAll, DenyAll, FolderGate


def test_inside_and_outside(tmp_path: pathlib.Path) -> None:
    gate = FolderGate([f"{tmp_path}/model", f"{tmp_path}/data"])
    for allowed in ("model", "model/x", "model/a/b", "data/x", "model/../data/x"):
        gate.check_read(f"{tmp_path}/{allowed}")
    for denied in ("", "model2", "model2/x", "modelx", "other", "model/../other", "data/../../x"):
        with pytest.raises(PermissionDeniedError):
            gate.check_read(f"{tmp_path}/{denied}")


def test_the_message_names_the_path_and_what_is_allowed(tmp_path: pathlib.Path) -> None:
    with pytest.raises(PermissionDeniedError) as caught:
        FolderGate([str(tmp_path)]).check_read("/etc/passwd")
    assert caught.value.message == (
        f"This step may not read /etc/passwd; it may read files in: {tmp_path}"
    )
    with pytest.raises(PermissionDeniedError) as caught:
        FolderGate([str(tmp_path)]).check_write(f"{tmp_path}/x")
    assert caught.value.message == (
        f"This step may not write {tmp_path}/x; it may write files in: no folder"
    )


def test_the_message_names_the_setting_that_gives_the_folders(tmp_path: pathlib.Path) -> None:
    with pytest.raises(PermissionDeniedError) as caught:
        FolderGate([str(tmp_path)], setting="a.b").check_read("/etc/passwd")
    assert caught.value.message.endswith(f"it may read files in: {tmp_path} (a.b)")
    with pytest.raises(PermissionDeniedError, match=r"files in: no folder \(a\.b\)$"):
        FolderGate([], write=True, setting="a.b").check_write("/etc/passwd")


def test_writing_is_allowed_apart(tmp_path: pathlib.Path) -> None:
    FolderGate([str(tmp_path)], write=True).check_write(f"{tmp_path}/x")
    with pytest.raises(PermissionDeniedError):
        FolderGate([str(tmp_path)], write=True).check_write(f"{tmp_path}/../x")


def test_links_are_followed_first(tmp_path: pathlib.Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "out").symlink_to(tmp_path)
    (tmp_path / "model" / "loop").symlink_to(tmp_path / "model" / "loop")
    (tmp_path / "alias").symlink_to(tmp_path / "model")
    gate = FolderGate([str(tmp_path / "alias")])  # resolved when the gate is made
    gate.check_read(f"{tmp_path}/model/x")
    gate.check_read(f"{tmp_path}/alias/x")
    gate.check_read(f"{tmp_path}/model/loop")  # opening it fails, but it leads nowhere
    with pytest.raises(PermissionDeniedError):
        gate.check_read(f"{tmp_path}/model/out/secret")


def test_relative_paths_and_nul(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gate = FolderGate([str(tmp_path)])
    gate.check_read("x")
    with pytest.raises(PermissionDeniedError):
        gate.check_read("../x")
    with pytest.raises(PermissionDeniedError, match="NUL byte may not be read"):
        gate.check_read(f"{tmp_path}/x\0")


def test_the_root_holds_everything() -> None:
    FolderGate(["/"]).check_read("/etc/passwd")


def test_all_and_nothing() -> None:
    AllowAll().check_read("/etc/passwd")
    AllowAll().check_write("/etc/passwd")
    with pytest.raises(PermissionDeniedError, match="it may read files in: no folder"):
        DenyAll().check_read("/etc/passwd")
    with pytest.raises(PermissionDeniedError, match="it may write files in: no folder"):
        DenyAll().check_write("/etc/passwd")
