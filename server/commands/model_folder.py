"""Find the SavedModel in a command's folder: the folder itself or its latest version."""

from __future__ import annotations

from pathlib import Path

from runtime.errors import InvalidArgumentError, NotFoundError
from server.models.model_source import find_versions

_FILES = ("saved_model.pb", "saved_model.pbtxt")


def find_saved_model(directory: str) -> str:
    """Return `directory` if it holds a SavedModel, else its subfolder with the highest number.

    Raises NotFoundError if there is no SavedModel and no such subfolder, and
    InvalidArgumentError if it is a file.
    """
    folder = Path(directory)
    if not folder.is_dir():
        if folder.exists():
            raise InvalidArgumentError(f"{directory} is a file; a SavedModel is a folder")
        raise NotFoundError(f"There is no folder {directory}")
    if any((folder / name).exists() for name in _FILES):
        return directory
    versions = find_versions(folder.name, directory)
    if not versions:
        raise NotFoundError(
            f"{directory} holds no SavedModel ({' or '.join(_FILES)}) and no folders of versions"
        )
    return str(versions[max(versions)])


def read_tags(text: str) -> list[str]:
    """Split a comma-separated list of tags; an empty list means no tags."""
    return [tag.strip() for tag in text.split(",") if tag.strip()]
