"""Find the versions of a model on disk, the numbered folders below its base path, and their files.

TF: tensorflow_serving/sources/storage_path/file_system_storage_path_source.cc
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
from pathlib import Path

from runtime.errors import InvalidArgumentError

_log = logging.getLogger(__name__)

_MAX_VERSION = (1 << 63) - 1
# TF: saved_model/constants.h
_LOADED_FOLDERS = ("variables", "assets", "assets.extra")
_MAX_FILES = 10_000  # in each of these folders
_reported: dict[str, str] = {}  # the last warning about each model's folders


def find_versions(name: str, base_path: str) -> dict[int, Path]:
    """Return the folders of the versions by number; folders whose name is no number are ignored.

    Raises InvalidArgumentError if `base_path` cannot be listed. An empty mapping would unload the
    model if a file system is unreachable for a moment.
    """
    try:
        numbered = [
            (version, child)
            for child in sorted(Path(base_path).iterdir())
            if (version := _version_number(child)) is not None
        ]
    except OSError as error:
        raise InvalidArgumentError(
            f"Could not find base path {base_path} for servable {name} with error {error}"
        ) from error
    versions: dict[int, Path] = {}
    for version, child in numbered:
        if version in versions:
            text = f"{child} is used, {versions[version]} is not"
            if _reported.get(name) != text:  # each poll finds it again
                _reported[name] = text
                _log.warning("Model %s has version %d twice: %s", name, version, text)
        versions[version] = child
    return versions


def _version_number(child: Path) -> int | None:
    """Return the version number of a folder, or None if it has none; `00000123` is 123."""
    text = child.name
    if not (text.isascii() and text.isdigit()) or not child.is_dir():
        return None
    version = int(text)
    return version if version <= _MAX_VERSION else None


Files = frozenset[tuple[str, int, int, int]]  # (path, inode, size, time of the last change in ns)


def version_files(folder: Path) -> Files:
    """Return what tells whether the files of a version's SavedModel have changed.

    These are the files that loading reads: `saved_model.pb` and whatever else is in the folder
    itself, and the files in `variables`, `assets` and `assets.extra`. A file that can't be
    inspected is left out; at most _MAX_FILES are inspected. No contents are read.
    """
    found: set[tuple[str, int, int, int]] = set()
    for part in (folder, *(folder / name for name in _LOADED_FOLDERS)):
        with contextlib.suppress(OSError), os.scandir(part) as entries:
            for entry in itertools.islice(entries, _MAX_FILES):
                with contextlib.suppress(OSError):
                    if entry.is_file():
                        stat = entry.stat()
                        found.add((entry.path, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return frozenset(found)
