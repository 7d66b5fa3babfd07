"""Paths in settings that are for processes in other folders."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

# The keys of files and folders: model_config_file, base_path, model_folders, allowed_paths, …
_PATH_KEY = re.compile(r"(^|_)(file|folders|paths|prefix)$|^base_path$")


def with_absolute_paths(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings, as JSON, whose paths do not depend on the folder of a process."""
    return {key: _absolute(key, value) for key, value in settings.items()}


def _absolute(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return with_absolute_paths(value)
    if isinstance(value, list | tuple):
        return [_absolute(key, each) for each in value]
    if isinstance(value, str) and value and _PATH_KEY.search(key):
        return str(Path(value).absolute())
    return value
