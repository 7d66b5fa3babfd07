"""Errors of settings name where the value came from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runtime.foundation.errors import InvalidArgumentError
from server.settings import Settings, load_settings, settings_sources
from server.settings_sources import Sources, unknown_variables, variables_of


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("rest: {port: 1\nlog: x", "is not YAML, line 2, column 4: expected ',' or '}'"),
        ("- 1", "must have keys at its top, such as `rest:`; it has list [1]"),
        ("rest", "must have keys at its top, such as `rest:`; it has str 'rest'"),
        ("\x00", "is not YAML: "),
        ("1: {port: 1}", "must have words as keys, such as `rest:`; it has int 1"),
    ],
)
def test_a_file_that_is_not_yaml_is_a_sentence(content: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(content)
    with pytest.raises(InvalidArgumentError, match=re.escape(text)) as error:
        load_settings(file, environment={})
    assert error.value.message.startswith(f"Configuration file {file} ")


def test_an_empty_file_has_no_settings(tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text("# nothing\n")
    assert load_settings(file, environment={}).rest == Settings().rest


@pytest.mark.parametrize("content", [b"\xff\xfe\x00\xd8", b"\xff\xfe", "rest: {}".encode("utf-16")])
def test_bytes_that_are_not_utf_8(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_bytes(content)
    with pytest.raises(InvalidArgumentError, match="is not YAML"):
        load_settings(file, environment={})


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("RUNSTEP_REST__PORT", "x", "rest.port: must be a port"),
        ("RUNSTEP_REST__HOST", "*", "rest.host: must be a name or an address; 0.0.0.0 is every"),
        ("RUNSTEP_REST__HOST", "", "rest.host: must be a name or an address; 0.0.0.0 is every"),
        ("RUNSTEP_LOG__LEVEL", "loud", "log.level: Input should be 'debug'"),
        ("RUNSTEP_THREAD_POOLS", "no", "RUNSTEP_THREAD_POOLS must be JSON, got 'no'"),
        ("RUNSTEP_SESSIONS__ALLOWED_PATHS", "[1", "RUNSTEP_SESSIONS__ALLOWED_PATHS"),
    ],
)
def test_a_wrong_variable_is_named(
    name: str, value: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidArgumentError, match=re.escape(text)) as error:
        load_settings(environment={})
    assert f"nvironment variable {name}" in error.value.message


def test_a_wrong_value_of_the_file_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNSTEP_REST__HOST", "localhost")
    file = tmp_path / "server.yaml"
    file.write_text("rest: {port: -1}")
    with pytest.raises(InvalidArgumentError) as error:
        load_settings(file, environment={})
    assert error.value.message.endswith(f"got -1 (file {file})")


def test_sources_as_text(tmp_path: Path) -> None:
    sources = Sources(tmp_path, {"rest.port": "--rest_api_port"}, ("RUNSTEP_LOG__LEVEL",))
    assert str(sources) == (
        f"file {tmp_path}; environment RUNSTEP_LOG__LEVEL; flags --rest_api_port"
    )
    assert sources.of("rest.port") == "flag --rest_api_port"
    assert sources.of("log.level") == "environment variable RUNSTEP_LOG__LEVEL"
    assert sources.of("grpc.port") == f"file {tmp_path}"
    assert str(Sources(None)) == "no file"


def test_the_variables_of_the_image_are_a_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNSTEP_LOG__LEVEL", "info")
    monkeypatch.setenv("RUNSTEP_MODELS", "[]")
    sources = settings_sources(None, model_variables=("MODEL_NAME", "MODEL_BASE_PATH"))
    assert str(sources) == (
        "no file; environment MODEL_NAME, MODEL_BASE_PATH, RUNSTEP_LOG__LEVEL, RUNSTEP_MODELS"
    )
    assert sources.of("models.0.name") == "environment variables MODEL_NAME and MODEL_BASE_PATH"
    only_name = settings_sources(None, model_variables=("MODEL_NAME",))
    assert only_name.of("models.0.name") == "environment variable MODEL_NAME"


def test_variables_that_name_no_setting() -> None:
    environment = {
        "RUNSTEP_REST__PORT": "1",
        "RUNSTEP_RSET__PORT": "1",
        "RUNSTEP_SERVICE_HOST": "10.0.0.1",  # Kubernetes, for a service of that name
        "RUNSTEP_PORT_8501_TCP": "tcp://10.0.0.1:8501",
        "HOME": "/",
    }
    assert variables_of(Settings, environment) == ("RUNSTEP_REST__PORT",)
    assert unknown_variables(Settings, environment) == ("RUNSTEP_RSET__PORT",)


def test_the_executable_has_no_default_file() -> None:
    assert settings_sources(None, has_default_file=False).file is None
