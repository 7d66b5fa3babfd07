"""Convert the flags of `tensorflow_model_server` to settings."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

import protos as pb
from runtime.errors import InvalidArgumentError
from server.commands.model_server_flags import FLAGS, Flag
from server.settings_sources import model_of_container, model_variables_of
from server.text_message import read_text_message

_METRICS_PATH = "/monitoring/prometheus/metrics"  # TF: PrometheusExporter::kPrometheusPath


class FlagValues:
    """The flags that were given; `settings` are those that they mean.

    `flag_of` maps the keys of the settings to flags. `model_variables` are the variables of
    TensorFlow Serving's image that give the model, or a part of it. `notes` are sentences for the
    log.
    Raises InvalidArgumentError if a flag is refused, a value cannot be used or flags contradict
    each other, and NotFoundError if a file of a flag is missing.
    """

    def __init__(
        self, options: argparse.Namespace, environment: Mapping[str, str] | None = None
    ) -> None:
        self.settings: dict[str, Any] = {}
        self.flag_of: dict[str, str] = {}
        self.model_variables: tuple[str, ...] = ()
        self.notes: list[str] = []
        given = {flag.name: getattr(options, flag.name) for flag in FLAGS}
        self._given = {name: value for name, value in given.items() if value not in (None, "")}
        _check_combinations(self._given)
        for flag in FLAGS:
            if flag.name in self._given:
                self._use(flag, self._given[flag.name])
        if "model_config_file" not in self._given:
            self._use_model(environment or {})
        self._skip_equal_ports()

    def get(self, name: str) -> Any:
        """Return the value of a flag, or None if it is not given."""
        return self._given.get(name)

    def _use(self, flag: Flag, value: Any) -> None:
        if flag.treatment == "refused":
            if value:
                raise InvalidArgumentError(f"--{flag.name} is refused, because {flag.note}")
        elif flag.treatment == "no effect":
            self.notes.append(f"--{flag.name} has no effect here, because {flag.note}")
        elif flag.setting and flag.setting not in ("models", "thread_pools"):
            convert = _CONVERSIONS.get(flag.name)
            self._set(flag.setting, value if convert is None else convert(value), flag.name)

    def _set(self, key: str, value: Any, flag: str) -> None:
        *sections, last = key.split(".")
        target = self.settings
        for section in sections:
            target = target.setdefault(section, {})
        target[last] = value
        self.flag_of[key] = f"--{flag}"

    def _use_model(self, environment: Mapping[str, str]) -> None:
        """Set the one model of the flags; a part that is not given is that of the environment.

        TF: tools/docker/Dockerfile (the entry point gives both flags from the environment, and
        flags that come later take precedence)
        """
        name, base_path = self.get("model_name"), self.get("model_base_path")
        if base_path is None:
            self.model_variables = model_variables_of(environment)
        elif name is None and environment.get("MODEL_NAME"):
            self.model_variables = ("MODEL_NAME",)
        if name is None and base_path is None:
            return
        container = model_of_container(environment)
        if base_path is None:
            if container is None:
                raise InvalidArgumentError(f"--model_name={name} needs --model_base_path")
            base_path = container["base_path"]
        name = name or environment.get("MODEL_NAME") or "default"
        self.settings["models"] = [{"name": name, "base_path": base_path}]
        for key in ("name", "base_path"):
            if self.get(f"model_{key}") is not None:
                self.flag_of[f"models.0.{key}"] = f"--model_{key}"

    def _skip_equal_ports(self) -> None:
        port = self.get("port")
        if port and port == self.get("rest_api_port"):
            self._set("rest.port", 0, "rest_api_port")
            self.notes.append(
                "--rest_api_port cannot be the same as --port; the HTTP port stays closed"
            )


def _check_combinations(given: Mapping[str, Any]) -> None:
    if "batching_parameters_file" in given and not given.get("enable_batching"):
        raise InvalidArgumentError(
            "--batching_parameters_file is set without setting --enable_batching to true"
        )


def _channel_arguments(text: str) -> dict[str, int | str]:
    arguments: dict[str, int | str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or not name:
            raise InvalidArgumentError(
                f"--grpc_channel_arguments requires name=value, separated by commas; got {part!r}"
            )
        try:
            arguments[name] = int(value)
        except ValueError:
            arguments[name] = value
    return arguments


def _metrics_path(file: str) -> str | None:
    """Return the path of the metrics, or None without metrics; `file` is a MonitoringConfig."""
    message = read_text_message(file, pb.server_config.MonitoringConfig())
    if not message.prometheus_config.enable:
        return None
    return message.prometheus_config.path or _METRICS_PATH


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "model_config_file_poll_wait_seconds": lambda seconds: max(seconds, 0),
    "num_load_threads": lambda number: max(number, 1),
    "load_retry_interval_micros": lambda micros: max(micros, 0) / 1e6,
    "num_request_iterations_for_warmup": lambda number: max(number, 1),
    "saved_model_tags": lambda text: [tag for tag in text.split(",") if tag],
    "grpc_channel_arguments": _channel_arguments,
    "monitoring_config_file": _metrics_path,
}
