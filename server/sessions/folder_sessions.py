"""Open sessions on SavedModels in the folders of `sessions.model_folders`, which serve nothing.

TF: tensorflow/cc/saved_model/loader.cc (LoadSavedModel, LoadMetaGraphIntoSession)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import protos as pb
from runtime.api import SessionOptions, load_saved_model
from runtime.errors import InvalidArgumentError, NotFoundError, PermissionDeniedError
from server.models.load_metrics import LoadMetrics
from server.sessions.requests import FolderSource, OpenedModel, as_direct_session

_CALLER_THREAD = pb.RunOptions(inter_op_thread_pool=-1)
_MODEL_FILES = ("saved_model.pb", "saved_model.pbtxt", "saved_model.cpb")


class FolderSessions:
    """Checks paths and loads; `folders` may be read, and `allowed_paths` are what graphs may write.

    Raises InvalidArgumentError if a folder is in an allowed path or the reverse: clients could then
    write the models that others open.
    """

    def __init__(
        self, folders: Sequence[str], allowed_paths: Sequence[str], metrics: LoadMetrics
    ) -> None:
        self._folders = [Path(os.path.realpath(folder)) for folder in folders]
        self._metrics = metrics
        for path in allowed_paths:
            written = Path(os.path.realpath(path))
            for folder in self._folders:
                if written.is_relative_to(folder) or folder.is_relative_to(written):
                    raise InvalidArgumentError(
                        f"sessions.model_folders has {folder} and sessions.allowed_paths has "
                        f"{written}; no folder may be in both, because graphs write the latter"
                    )

    def open(self, source: FolderSource, options: SessionOptions) -> OpenedModel:
        """Load a SavedModel, run its restore and init ops, and return its session.

        The method may block for long, so it must not be called on the event loop. Raises
        PermissionDeniedError if the folder, or the file of the model in it, is not under a folder
        for models once all symbolic links are followed; NotFoundError if there is no model or no
        meta graph of these tags; and what loading raises.
        """
        folder = self._resolved(source.export_dir)
        with self._metrics.load(folder):
            bundle = load_saved_model(options, _CALLER_THREAD, str(folder), source.tags)
        return OpenedModel(as_direct_session(bundle.session), version=0, shared_weights=False)

    def _resolved(self, export_dir: str) -> Path:
        """Return the folder without symbolic links, so that it is not resolved differently later.

        A relative path is in the first folder for models that has it.
        """
        refusal = PermissionDeniedError(
            f"{export_dir!r:.200} is not under a folder of sessions.model_folders"
        )
        if not self._folders:
            raise PermissionDeniedError(
                "This server opens no sessions on folders (sessions.model_folders is empty)"
            )
        if not export_dir or "\0" in export_dir:
            raise refusal
        found = [Path(os.path.realpath(folder / export_dir)) for folder in self._folders]
        allowed = [path for path in found if self._is_allowed(path)]
        if not allowed:
            raise refusal
        folder = next((path for path in allowed if path.is_dir()), None)
        if folder is None:
            raise NotFoundError(f"There is no folder {export_dir!r:.200} in sessions.model_folders")
        for name in _MODEL_FILES:
            if not self._is_allowed(Path(os.path.realpath(folder / name))):
                raise refusal
        return folder

    def _is_allowed(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self._folders)
