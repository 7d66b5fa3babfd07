"""Every path of the settings is made absolute, and nothing else is changed."""

from __future__ import annotations

from pathlib import Path

from server.settings import Settings
from server.settings_paths import with_absolute_paths

SETTINGS = {
    "access": {"keys_file": "keys.yaml", "jwt": {"key_file": "/etc/key.pem"}},
    "admin": {"model_folders": ["models", "/models"]},
    "batching": {"enabled": True, "parameters_file": "batching.txt"},
    "grpc": {"socket_path": "runstep.sock"},
    "models": [
        {
            "name": "prefix",
            "base_path": "a/b",
            "request_log": {"filename_prefix": "log/requests"},
            "batching": {"mode": "parameters", "parameters_file": "b.txt"},
        }
    ],
    "rest": {"metrics_path": "/metrics"},
    "session_config_file": "config.txt",
    "sessions": {"allowed_paths": ["data"], "model_folders": []},
    "tls": {"certificate_file": "c.pem", "key_file": "k.pem", "client_ca_file": None},
}


def test_paths_are_absolute() -> None:
    here = Path.cwd()
    found = with_absolute_paths(SETTINGS)
    assert found["access"] == {
        "keys_file": str(here / "keys.yaml"), "jwt": {"key_file": "/etc/key.pem"},
    }  # fmt: skip
    assert found["admin"] == {"model_folders": [str(here / "models"), "/models"]}
    assert found["models"] == [
        {
            "name": "prefix",
            "base_path": str(here / "a/b"),
            "request_log": {"filename_prefix": str(here / "log/requests")},
            "batching": {"mode": "parameters", "parameters_file": str(here / "b.txt")},
        }
    ]
    assert found["batching"]["parameters_file"] == str(here / "batching.txt")
    assert found["session_config_file"] == str(here / "config.txt")
    assert found["sessions"] == {"allowed_paths": [str(here / "data")], "model_folders": []}
    assert found["tls"] == {
        "certificate_file": str(here / "c.pem"), "key_file": str(here / "k.pem"),
        "client_ca_file": None,
    }  # fmt: skip
    assert (found["rest"], found["grpc"]) == (SETTINGS["rest"], SETTINGS["grpc"])


def test_no_other_setting_is_a_path() -> None:
    given = Settings().model_dump(mode="json")
    assert with_absolute_paths(given) == given
