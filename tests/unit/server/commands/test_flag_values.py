"""TensorFlow Serving's flags as settings."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

import pytest

from runtime.foundation.errors import InvalidArgumentError, NotFoundError, OpError
from server.commands.flag_arguments import add_flags
from server.commands.flag_values import FlagValues
from server.commands.model_server_flags import FLAGS
from server.settings_sources import Sources


def values(*arguments: str, **environment: str) -> FlagValues:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return FlagValues(parser.parse_args(arguments), environment)


def test_flags_become_settings() -> None:
    flags = values(
        "--port=1", "--rest_api_port=2", "--rest_api_timeout_in_ms=3",
        "--model_name=m", "--model_base_path=/m", "--file_system_poll_wait_seconds=0",
    )  # fmt: skip
    assert flags.settings == {
        "grpc": {"port": 1},
        "rest": {"port": 2, "timeout_ms": 3},
        "models": [{"name": "m", "base_path": "/m"}],
        "model_poll_seconds": 0,
    }
    assert flags.flag_of["rest.port"] == "--rest_api_port"


def test_flags_that_are_not_given_or_empty_leave_the_settings_alone() -> None:
    assert values("--model_config_file=", "--ssl_config_file=").settings == {}


@pytest.mark.parametrize(
    ("flag", "settings"),
    [
        ("--port=0", {"grpc": {"port": 0}}),
        ("--rest_api_enable_cors_support=true", {"rest": {"cors": True}}),
        ("--rest_api_num_threads=9", {"rest": {"codec_threads": 9}}),
        ("--grpc_socket_path=/s", {"grpc": {"socket_path": "/s"}}),
        ("--ssl_config_file=/f", {"grpc": {"ssl_config_file": "/f"}}),
        ("--max_num_load_retries=0", {"model_loading": {"max_retries": 0}}),
        ("--load_retry_interval_micros=1500000", {"model_loading": {"retry_seconds": 1.5}}),
        ("--load_retry_interval_micros=-1", {"model_loading": {"retry_seconds": 0}}),
        ("--enable_model_warmup=False", {"model_loading": {"warmup": False}}),
        ("--num_request_iterations_for_warmup=3", {"model_loading": {"warmup_iterations": 3}}),
        ("--num_request_iterations_for_warmup=0", {"model_loading": {"warmup_iterations": 1}}),
        ("--num_load_threads=4", {"model_loading": {"num_threads": 4}}),
        ("--num_load_threads=0", {"model_loading": {"num_threads": 1}}),
        ("--saved_model_tags=serve,gpu", {"model_loading": {"tags": ["serve", "gpu"]}}),
        ("--enable_signature_method_name_check", {"model_loading": {"check_method_names": True}}),
        ("--tensorflow_session_config_file=/f", {"session_config_file": "/f"}),
        (
            "--allow_version_labels_for_unavailable_models=1",
            {"model_loading": {"allow_labels_for_unavailable": True}},
        ),
        ("--model_config_file_poll_wait_seconds=-1", {"model_config_file_poll_seconds": 0}),
        ("--enable_batching", {"batching": {"enabled": True}}),
        ("--enable_per_model_batching_parameters", {"batching": {"per_model_parameters": True}}),
        ("--enable_serialization_as_tensor_content", {"grpc": {"tensor_content": True}}),
        (
            "--grpc_channel_arguments=grpc.max_connection_age_ms=2000,grpc.x=y",
            {"grpc": {"channel_arguments": {"grpc.max_connection_age_ms": 2000, "grpc.x": "y"}}},
        ),
    ],
)
def test_flags(flag: str, settings: dict[str, Any]) -> None:
    assert values(flag).settings == settings


def test_batching_parameters_require_batching() -> None:
    flags = values("--enable_batching", "--batching_parameters_file=/b")
    assert flags.settings == {"batching": {"enabled": True, "parameters_file": "/b"}}
    with pytest.raises(InvalidArgumentError, match="without setting --enable_batching to true"):
        values("--batching_parameters_file=/b")


def test_a_flag_without_effect_is_noted_with_its_reason() -> None:
    flags = values("--enable_profiler", "--num_tflite_pools=2")
    assert flags.settings == {}
    assert len(flags.notes) == 2
    assert flags.notes[0].startswith("--num_tflite_pools has no effect here, because there is no")


@pytest.mark.parametrize("name", [flag.name for flag in FLAGS if flag.treatment == "refused"])
def test_a_refused_flag(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^--{name} is refused, because "):
        values(f"--{name}=true")


def test_a_refused_boolean_may_be_false() -> None:
    assert values("--use_alts_credentials=false").notes == []


@pytest.mark.parametrize(
    ("flags", "environment", "name", "base_path"),
    [
        (("--model_base_path=/x",), {}, "default", "/x"),
        (("--model_base_path=/x",), {"MODEL_NAME": "m"}, "m", "/x"),
        (("--model_base_path=/x", "--model_name=n"), {"MODEL_NAME": "m"}, "n", "/x"),
        (("--model_name=n",), {"MODEL_NAME": "m", "MODEL_BASE_PATH": "/b"}, "n", "/b/m"),
        (("--model_name=n",), {"MODEL_BASE_PATH": "/b"}, "n", "/b/model"),
    ],
)
def test_the_model_of_flags_and_environment(
    flags: tuple[str, ...], environment: dict[str, str], name: str, base_path: str
) -> None:
    settings = values(*flags, **environment).settings
    assert settings == {"models": [{"name": name, "base_path": base_path}]}


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (
            ("--model_name=n", "--model_base_path=/x"),
            "no file; flags --model_name, --model_base_path",
        ),
        (("--model_base_path=/x",), "no file; flags --model_base_path"),
    ],
)
def test_each_flag_of_the_model_is_a_source(flags: tuple[str, ...], text: str) -> None:
    sources = Sources(None, values(*flags).flag_of)
    assert str(sources) == text
    assert sources.of("models.0.base_path") == "flag --model_base_path"


@pytest.mark.parametrize(
    ("flags", "used"),
    [
        ((), ("MODEL_NAME", "MODEL_BASE_PATH")),
        (("--model_name=n",), ("MODEL_NAME", "MODEL_BASE_PATH")),
        (("--model_base_path=/x",), ("MODEL_NAME",)),
        (("--model_base_path=/x", "--model_name=n"), ()),
        (("--model_config_file=/c",), ()),
    ],
)
def test_which_variables_of_the_image_are_used(
    flags: tuple[str, ...], used: tuple[str, ...]
) -> None:
    given = values(*flags, MODEL_NAME="m", MODEL_BASE_PATH="/b")
    assert given.model_variables == used


def test_a_model_config_file_replaces_the_flags_of_one_model() -> None:
    flags = values("--model_config_file=/c", "--model_name=m")
    assert flags.settings == {"model_config_file": "/c"}


def test_a_name_without_a_folder() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^--model_name=m needs --model_base_path$"):
        values("--model_name=m")


def test_equal_ports_close_that_of_http() -> None:
    flags = values("--port=8500", "--rest_api_port=8500")
    assert flags.settings == {"grpc": {"port": 8500}, "rest": {"port": 0}}
    assert flags.notes[0].startswith("--rest_api_port cannot be the same as --port")
    assert values("--port=0", "--rest_api_port=0").notes == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("prometheus_config { enable: true }", "/monitoring/prometheus/metrics"),
        ('prometheus_config { enable: true path: "/metrics" }', "/metrics"),
        ("prometheus_config { enable: false }", None),
        ("", None),
    ],
)
def test_monitoring(text: str, path: str | None, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "monitoring.config"
    file.write_text(text)
    assert values(f"--monitoring_config_file={file}").settings == {"rest": {"metrics_path": path}}


@pytest.mark.parametrize(
    ("flag", "kind", "text"),
    [
        ("--monitoring_config_file=/nowhere", NotFoundError, "/nowhere cannot be read: No such"),
        ("--grpc_channel_arguments=a", InvalidArgumentError, "requires name=value"),
    ],
)
def test_wrong_values(flag: str, kind: type[OpError], text: str) -> None:
    with pytest.raises(kind, match=text):
        values(flag)
