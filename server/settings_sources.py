"""Where settings come from: flags, the environment and a YAML file; errors name the source.

A value of an earlier source takes precedence over those of the later ones.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsError,
    YamlConfigSettingsSource,
)

from runtime.errors import InvalidArgumentError, NotFoundError
from server.settings_errors import describe_errors

PREFIX = "RUNSTEP_"
_DELIMITER = "__"
# TF: tools/docker/Dockerfile
_MODEL_VARIABLES = ("MODEL_NAME", "MODEL_BASE_PATH")
S = TypeVar("S", bound=BaseSettings)


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """The sources of one server's settings.

    `file` is None if there is no file. `flags` maps a key, such as `rest.port`, to the flag that
    gives it. `variables` are the names of the environment variables RUNSTEP_… that are read, and
    `model_variables` those of TensorFlow Serving's image that give the one model, which takes
    precedence over them.
    """

    file: Path | None
    flags: Mapping[str, str] = dataclasses.field(default_factory=dict)
    variables: tuple[str, ...] = ()
    model_variables: tuple[str, ...] = ()

    def of(self, key: str) -> str:
        """Return the source of the value of a key, such as `rest.port` or `models.0.name`."""
        for given, flag in self.flags.items():
            if _within(key, given):
                return f"flag {flag}"
        if self.model_variables and _within(key, "models"):
            noun = "variable" if len(self.model_variables) == 1 else "variables"
            return f"environment {noun} {' and '.join(self.model_variables)}"
        for name in self.variables:
            if _within(key, _key(name)):
                return f"environment variable {name}"
        return "defaults" if self.file is None else f"file {self.file}"

    def __str__(self) -> str:
        """Return the sources as the log names them."""
        parts = ["no file" if self.file is None else f"file {self.file}"]
        variables = (*self.model_variables, *self.variables)
        if variables:
            parts.append(f"environment {', '.join(variables)}")
        if self.flags:
            parts.append(f"flags {', '.join(dict.fromkeys(self.flags.values()))}")
        return "; ".join(parts)


def _key(variable: str) -> str:
    return variable[len(PREFIX) :].lower().replace(_DELIMITER, ".")


def _within(key: str, part: str) -> bool:
    """Return whether one key is the other or is inside it."""
    return f"{key}.".startswith(f"{part}.") or f"{part}.".startswith(f"{key}.")


def variables_of(settings: type[BaseSettings], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables of `environment` that are settings."""
    return tuple(
        name
        for name in sorted(environment)
        if name.upper().startswith(PREFIX) and _key(name).split(".")[0] in settings.model_fields
    )


def model_variables_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables of TensorFlow Serving's image that are set."""
    return tuple(name for name in _MODEL_VARIABLES if name in environment)


def model_of_container(environment: Mapping[str, str]) -> dict[str, str] | None:
    """Return the model `$MODEL_BASE_PATH/$MODEL_NAME` of TensorFlow Serving's image.

    Returns None if neither variable is set.
    """
    if not model_variables_of(environment):
        return None
    name = environment.get("MODEL_NAME") or "model"
    base = environment.get("MODEL_BASE_PATH") or "/models"
    return {"name": name, "base_path": str(Path(base) / name)}


def unknown_variables(
    settings: type[BaseSettings], environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the names of variables that begin as those of settings do but name no setting.

    Without those that Kubernetes makes for a service named `runstep`.
    """
    known = variables_of(settings, environment)
    return tuple(
        name
        for name in sorted(environment)
        if name.startswith(PREFIX)
        and name not in known
        and not name.startswith((f"{PREFIX}SERVICE_", f"{PREFIX}PORT"))
    )


def read_sources(settings: type[S], values: Mapping[str, Any], sources: Sources, path: Path) -> S:
    """Read the settings from `values`, then the environment, then the YAML file `path`.

    Raises InvalidArgumentError that names each wrong key and its source.
    """
    try:
        return _reading(settings, path)(**values)
    except ValidationError as error:
        text = describe_errors(
            error, settings, lambda key: sources.of(key) if key else str(sources)
        )
        raise InvalidArgumentError(text) from None
    except SettingsError as error:
        raise InvalidArgumentError(_wrong_variable(error, sources)) from None


def read_values(settings: type[S], values: Mapping[str, Any], source: str) -> S:
    """Read the settings from `values` alone; neither a file nor the environment counts.

    Raises InvalidArgumentError that names each wrong key and `source`.
    """
    try:
        return _reading(settings)(**values)
    except ValidationError as error:
        raise InvalidArgumentError(describe_errors(error, settings, lambda _: source)) from None


def check_yaml(path: Path) -> None:
    """Raise InvalidArgumentError that names the place if `path` has no settings in YAML."""
    try:
        content = yaml.safe_load(path.read_bytes().decode())  # not UTF-16, which YAML allows
    except OSError as error:
        raise NotFoundError(f"Configuration file {path} cannot be read: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        raise InvalidArgumentError(
            f"Configuration file {path} is not YAML{where}: {error.problem}"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        text = str(error).splitlines()[0]
        raise InvalidArgumentError(f"Configuration file {path} is not YAML: {text}") from None
    if content is not None and not isinstance(content, dict):
        raise InvalidArgumentError(
            f"Configuration file {path} must have keys at its top, such as `rest:`; "
            f"it has {type(content).__name__} {content!r:.60}"
        )
    for key in content or ():
        if not isinstance(key, str):
            raise InvalidArgumentError(
                f"Configuration file {path} must have words as keys, such as `rest:`; "
                f"it has {type(key).__name__} {key!r:.60}"
            )


def _reading(settings: type[S], path: Path | None = None) -> type[S]:
    """Return a subclass that reads what it is given, and then the environment and a file.

    Without a file, what it is given is all that counts.
    """

    class ReadSettings(settings):  # type: ignore[valid-type, misc] # the class is an argument
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            **_: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            if path is None:
                return (init_settings,)
            return init_settings, env_settings, YamlConfigSettingsSource(settings_cls, path)

    return ReadSettings


def _wrong_variable(error: SettingsError, sources: Sources) -> str:
    """Return a text for a variable whose value is no JSON, which pydantic names by its field."""
    for name in sources.variables:
        if f'"{_key(name).split(".")[0]}"' in str(error):
            value = os.environ.get(name, "")
            if _DELIMITER not in name or value[:1] in "[{":
                return f"Environment variable {name} must be JSON, got {value!r:.80}"
    return f"Wrong settings ({sources}): {error}"
