"""The supervisor says what is wrong before it makes anything."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from runtime.errors import OpError
from server.settings import Settings
from server.supervision.supervisor import Supervisor


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tls": {"certificate_file": "none.pem", "key_file": "none.pem"}}, "tls.certificate_file"),
        ({"grpc": {"ssl_config_file": "none.txt"}}, "none.txt cannot be read"),
        ({"access": {"keys_file": "none.yaml"}}, "Cannot read none.yaml: No such file"),
        ({"access": {"keys_file": "keys.yaml"}}, "Wrong entries in keys.yaml: owner: There is"),
        ({"access": {"jwt": {"key_file": "none.pem"}}}, "none.pem"),
        ({"model_config_file": "none.config"}, "Cannot read the model config file none.config"),
        ({"model_config_file": "keys.yaml"}, "Invalid protobuf file keys.yaml"),
        (
            {"batching": {"enabled": True, "parameters_file": "none.txt"}},
            "Cannot read the batching parameters none.txt",
        ),
        (
            {"models": [{"name": "m", "base_path": "m", "batching": {"parameters_file": "n.txt"}}]},
            "Cannot read the batching parameters n.txt",
        ),
    ],
)
def test_files_are_read_before_a_port_is_open(
    settings: dict[str, Any],
    message: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    pathlib.Path("keys.yaml").write_text("owner: {}")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(OpError, match=message):
        Supervisor(Settings(**settings), 2, "", [])
    assert [path.name for path in tmp_path.iterdir()] == ["keys.yaml"]


def test_a_folder_that_can_not_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/proc")
    with pytest.raises(OpError) as caught:
        Supervisor(Settings(), 2, "", [])
    assert str(caught.value).startswith(
        "Several processes require a folder for their sockets and shared weights, and nothing can "
        "be written to /proc (TMPDIR): "
    )
