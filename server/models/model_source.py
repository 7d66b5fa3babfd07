"""Find the versions of a model on disk: the numbered folders below its base path.

TF: tensorflow_serving/sources/storage_path/file_system_storage_path_source.cc
"""

from __future__ import annotations

import logging
from pathlib import Path

from runtime.errors import InvalidArgumentError

_log = logging.getLogger(__name__)

_MAX_VERSION = (1 << 63) - 1


def find_versions(name: str, base_path: str) -> dict[int, Path]:
    """Return the folders of the versions by number; folders whose name is no number are ignored.

    Raises InvalidArgumentError if `base_path` cannot be listed. An empty mapping would unload the
    model if a file system is unreachable for a moment.
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
    """Return the version number of a folder, or None if it has none; `00000123` is 123."""
    text = child.name
    if not (text.isascii() and text.isdigit()) or not child.is_dir():
        return None
    version = int(text)
    return version if version <= _MAX_VERSION else None
