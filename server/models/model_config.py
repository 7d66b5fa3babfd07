"""The configuration of each model: its folder, the versions to serve, and their labels.

The configuration is read from the setting `models` or from TensorFlow Serving's model config file.
The supervisor of several processes reads it too, so this imports nothing that runs models.

TF: tensorflow_serving/config/model_server_config.proto, model_servers/server_core.cc
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from google.protobuf import text_format

import protos as pb
from runtime.errors import InvalidArgumentError, NotFoundError
from server.models.version_policy import (
    AllVersions,
    LatestVersions,
    SpecificVersions,
    VersionPolicy,
)
from server.settings import ModelSettings, RequestLogSettings

_log = logging.getLogger(__name__)

_PLATFORM = "tensorflow"


@dataclasses.dataclass(frozen=True, slots=True)
class ModelConfig:
    """One served model; `base_path` is a folder with one subfolder for each version."""

    name: str
    base_path: str
    policy: VersionPolicy = dataclasses.field(default_factory=LatestVersions)
    labels: Mapping[str, int] = dataclasses.field(default_factory=dict)
    request_log: RequestLogSettings | None = None


def from_settings(models: Iterable[ModelSettings]) -> list[ModelConfig]:
    """Return the models of the settings."""
    return [
        ModelConfig(
            model.name,
            model.base_path,
            _settings_policy(model),
            model.version_labels,
            model.request_log,
        )
        for model in models
    ]


def _settings_policy(model: ModelSettings) -> VersionPolicy:
    policies: dict[str, VersionPolicy] = {
        "latest": LatestVersions(model.latest_versions),
        "all": AllVersions(),
        "specific": SpecificVersions(model.specific_versions),
    }
    return policies[model.version_policy]


def read_model_config_file(path: Path) -> list[ModelConfig]:
    """Read the models of a text ModelServerConfig, TensorFlow Serving's `--model_config_file`.

    Raises NotFoundError if the file cannot be read, and InvalidArgumentError if it does not parse,
    lists a model twice, or names a platform other than TensorFlow.
    """
    return parse_model_config(read_model_config_text(path), path)


def read_model_config_text(path: Path) -> str:
    """Return the text of the file, or raise as `read_model_config_file` does."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise NotFoundError(f"Cannot read the model config file {path}: {error}") from error
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"Invalid protobuf file {path}: it is not text") from None


def parse_model_config(text: str, path: Path) -> list[ModelConfig]:
    """Return the models of the text of the file `path`, as `read_model_config_file` does."""
    message = pb.server_config.ModelServerConfig()
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        raise InvalidArgumentError(f"Invalid protobuf file {path}: {error}") from error
    return from_model_server_config(message)


def from_model_server_config(message: pb.server_config.ModelServerConfig) -> list[ModelConfig]:
    """Return the models of a ModelServerConfig; raise TensorFlow Serving's errors."""
    if message.WhichOneof("config") != "model_config_list":
        raise InvalidArgumentError("Invalid ServerModelConfig: it has no model_config_list")
    configs: dict[str, ModelConfig] = {}
    for entry in message.model_config_list.config:
        if entry.name in configs:
            raise InvalidArgumentError(
                f"Illegal to list model {entry.name} multiple times in config list"
            )
        _check_platform(entry)
        configs[entry.name] = ModelConfig(
            entry.name,
            entry.base_path,
            _proto_policy(entry.model_version_policy),
            dict(entry.version_labels),
            _request_log(entry),
        )
    return list(configs.values())


def _request_log(entry: pb.server_config.ModelConfig) -> RequestLogSettings | None:
    """Return how the requests on a model are logged, or None if they are not.

    TF: tensorflow_serving/core/request_logger.cc
    """
    config = entry.logging_config
    rate = config.sampling_config.sampling_rate
    for task in config.sampling_config.per_task_sampling_configs:
        if not task.dc and not task.HasField("task_index"):
            rate = task.sampling_rate
            break
    if rate <= 0:
        return None
    prefix = config.log_collector_config.filename_prefix
    if not prefix:
        _log.warning(
            "The requests on model %s are not logged: its logging_config has no filename_prefix",
            entry.name,
        )
        return None
    return RequestLogSettings(filename_prefix=prefix, sampling_rate=min(rate, 1.0))


def _check_platform(entry: pb.server_config.ModelConfig) -> None:
    if entry.model_type and entry.model_platform:
        raise InvalidArgumentError(
            "Illegal setting both ModelServerConfig::model_type (deprecated) and "
            f"ModelServerConfig::model_platform, model name is {entry.name}"
        )
    if not entry.model_type and not entry.model_platform:
        raise InvalidArgumentError(
            "Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
            f"ModelServerConfig::model_platform, model name is {entry.name}"
        )
    if entry.model_type == pb.server_config.OTHER:
        raise InvalidArgumentError(
            f"ModelServerConfig::model_type choice {entry.model_type} not supported."
        )
    if entry.model_platform and entry.model_platform != _PLATFORM:
        raise InvalidArgumentError(
            f"Model {entry.name} requests unsupported platform {entry.model_platform}"
        )


def _proto_policy(
    policy: pb.server_config.FileSystemStoragePathSourceConfig.ServableVersionPolicy,
) -> VersionPolicy:
    choice = policy.WhichOneof("policy_choice")
    if choice == "all":
        return AllVersions()
    if choice == "specific":
        return SpecificVersions(tuple(policy.specific.versions))
    return LatestVersions(policy.latest.num_versions)
