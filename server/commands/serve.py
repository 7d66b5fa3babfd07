"""`runstep serve`: convert flags to settings, then run the server."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from runtime.errors import InvalidArgumentError
from server.settings import load_settings, with_parallelism

# (argparse's name of the flag, section of the setting or "", setting)
_FLAGS: tuple[tuple[str, str, str], ...] = (
    ("host", "rest", "host"),
    ("port", "grpc", "port"),
    ("rest_api_port", "rest", "port"),
    ("rest_api_timeout_in_ms", "rest", "timeout_ms"),
    ("model_config_file", "", "model_config_file"),
    ("model_config_file_poll_wait_seconds", "", "model_config_file_poll_seconds"),
    ("file_system_poll_wait_seconds", "", "model_poll_seconds"),
    ("rest_api_enable_cors_support", "rest", "cors"),
    ("max_num_load_retries", "model_loading", "max_retries"),
    ("load_retry_interval_micros", "model_loading", "retry_seconds"),
    ("enable_model_warmup", "model_loading", "warmup"),
    (
        "allow_version_labels_for_unavailable_models",
        "model_loading",
        "allow_labels_for_unavailable",
    ),
)


def serve(options: argparse.Namespace) -> int:
    """Serve until stopped, and return the exit code."""
    config = None if options.config is None else Path(options.config)
    settings = load_settings(config, flag_settings(options))
    settings = with_parallelism(
        settings,
        options.tensorflow_session_parallelism,
        options.tensorflow_inter_op_parallelism,
        options.tensorflow_intra_op_parallelism,
    )
    # Imported after the settings are read, so that a wrong setting is reported at once.
    from server.process import serve as serve_process

    return serve_process(settings)


def flag_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the nested settings of the flags that were given.

    Raises InvalidArgumentError if --model_name is given but --model_base_path is not.
    """
    settings: dict[str, Any] = {}
    for flag, section, key in _FLAGS:
        value = getattr(options, flag)
        if value is not None:
            target = settings.setdefault(section, {}) if section else settings
            target[key] = value
    model = _model(options.model_name, options.model_base_path)
    if model is not None:
        settings["models"] = [model]
    return settings


def _model(name: str | None, base_path: str | None) -> dict[str, str] | None:
    """Return the model of the flags, or None if neither flag is given.

    TF: --model_name defaults to `default`, --model_base_path has no default
    """
    if name is None and base_path is None:
        return None
    if base_path is None:
        raise InvalidArgumentError(f"--model_name={name} needs --model_base_path")
    return {"name": name or "default", "base_path": base_path}
