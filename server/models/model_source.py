"""The versions of a model on disk: the numbered folders below its base path.

TF: tensorflow_serving/sources/storage_path/file_system_storage_path_source.cc
"""

from __future__ import annotations

import logging
from pathlib import Path

from runtime.errors import InvalidArgumentError

_log = logging.getLogger(__name__)

_MAX_VERSION = (1 << 63) - 1


def find_versions(name: str, base_path: str) -> dict[int, Path]:
    """The folders of the versions by number; other names are ignored.

    Raises InvalidArgumentError when the base path cannot be listed, instead of returning an empty
    mapping: a file system that is unreachable for a moment must not unload a model.
    """
    try:
        children = sorted(Path(base_path).iterdir())
    except OSError as error:
        raise InvalidArgumentError(
            f"Could not find base path {base_path} for servable {name} with error {error}"
        ) from error
    versions: dict[int, Path] = {}
    for child in children:
        version = _version_number(child)
        if version is None:
            continue
        if version in versions:
            _log.warning(
                "Model %s has version %d twice: %s is used, %s is not",
                name, version, child, versions[version],
            )  # fmt: skip
        versions[version] = child
    return versions


def _version_number(child: Path) -> int | None:
    """The version number of a folder, or None; `00000123` is 123."""
    text = child.name
    if not (text.isascii() and text.isdigit()) or not child.is_dir():
        return None
    version = int(text)
    return version if version <= _MAX_VERSION else None
