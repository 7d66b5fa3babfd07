from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from server.models.model_config import (
    ModelConfig,
    from_model_server_config,
    from_settings,
    read_model_config_file,
)
from server.models.version_policy import AllVersions, LatestVersions, SpecificVersions
from server.settings import ModelSettings, RequestLogSettings

FILE = """
model_config_list {
  config { name: 'a' base_path: '/models/a' model_platform: 'tensorflow' }
  config {
    name: 'b'
    base_path: '/models/b'
    model_platform: 'tensorflow'
    model_version_policy { specific { versions: 42 versions: 43 } }
    version_labels { key: 'stable' value: 42 }
  }
  config {
    name: 'c' base_path: '/models/c' model_type: TENSORFLOW
    model_version_policy { all {} }
  }
  config {
    name: 'd' base_path: '/models/d' model_platform: 'tensorflow'
    model_version_policy { latest { num_versions: 3 } }
    logging_config { sampling_config { sampling_rate: 0.1 } }
  }
}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "models.config"
    path.write_text(text)
    return path


def test_model_config_file(tmp_path: Path) -> None:
    assert read_model_config_file(write(tmp_path, FILE)) == [
        ModelConfig("a", "/models/a", LatestVersions(0)),
        ModelConfig("b", "/models/b", SpecificVersions((42, 43)), {"stable": 42}),
        ModelConfig("c", "/models/c", AllVersions()),
        ModelConfig("d", "/models/d", LatestVersions(3)),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("model_config_list {", "Invalid protobuf file"),
        ("", "it has no model_config_list"),
        (
            "model_config_list { config { name: 'a' model_platform: 'tensorflow' } "
            "config { name: 'a' model_platform: 'tensorflow' } }",
            "Illegal to list model a multiple times in config list",
        ),
        ("model_config_list { config { name: 'a' } }", "Illegal setting neither"),
        (
            "model_config_list { config { name: 'a' model_platform: 'x' model_type: OTHER } }",
            "Illegal setting both",
        ),
        ("model_config_list { config { name: 'a' model_type: OTHER } }", "not supported"),
        (
            "model_config_list { config { name: 'a' model_platform: 'caffe' } }",
            "Model a requests unsupported platform caffe",
        ),
    ],
)
def test_bad_model_config_files(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(InvalidArgumentError, match=error):
        read_model_config_file(write(tmp_path, text))


def test_a_model_config_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="Cannot read the model config file"):
        read_model_config_file(tmp_path / "none")


def test_a_model_config_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "models.config"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgumentError, match=r"models\.config: it is not text$"):
        read_model_config_file(path)


def test_models_of_the_settings() -> None:
    models = [
        ModelSettings(name="a", base_path="/a", latest_versions=2),
        ModelSettings(name="b", base_path="/b", version_policy="all", version_labels={"x": 1}),
        ModelSettings(name="c", base_path="/c", version_policy="specific", specific_versions=(1,)),
    ]
    assert from_settings(models) == [
        ModelConfig("a", "/a", LatestVersions(2)),
        ModelConfig("b", "/b", AllVersions(), {"x": 1}),
        ModelConfig("c", "/c", SpecificVersions((1,))),
    ]


@pytest.mark.parametrize(
    ("logging", "rate"),
    [
        ("", None),
        ("sampling_config { sampling_rate: 0.5 }", 0.5),
        ("sampling_config { sampling_rate: 7 }", 1.0),
        (
            "sampling_config { sampling_rate: 1 per_task_sampling_configs { dc: 'a' sampling_rate:"
            " 0.1 } per_task_sampling_configs { sampling_rate: 0.25 } }",
            0.25,
        ),
    ],
)
def test_the_logging_of_requests(logging, rate):
    text = f"""model_config_list {{ config {{
        name: "m" base_path: "/m" model_platform: "tensorflow"
        logging_config {{ log_collector_config {{ filename_prefix: "/logs/r" }} {logging} }}
        }} }}"""
    message = text_format.Parse(text, pb.server_config.ModelServerConfig())
    (config,) = from_model_server_config(message)
    if rate is None:
        assert config.request_log is None
    else:
        assert config.request_log == RequestLogSettings(
            filename_prefix="/logs/r", sampling_rate=rate
        )


def test_logging_without_files_is_said(caplog):
    text = """model_config_list { config { name: "m" base_path: "/m" model_platform: "tensorflow"
        logging_config { sampling_config { sampling_rate: 1 } } } }"""
    message = text_format.Parse(text, pb.server_config.ModelServerConfig())
    (config,) = from_model_server_config(message)
    assert config.request_log is None
    assert "are not logged: its logging_config has no filename_prefix" in caplog.text
