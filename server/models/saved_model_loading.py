"""Load a SavedModel for serving, with the same access to files as the steps of clients."""

from __future__ import annotations

from pathlib import Path

import protos as pb
from runtime.api import (
    DirectSession,
    FolderGate,
    SavedModelBundle,
    SessionOptions,
    load_saved_model,
)
from server.settings import Settings

SERVING_TAGS = ("serve",)  # TF: saved_model/tag_constants.h (kSavedModelTagServe)
_CALLER_THREAD = -1  # RunOptions.inter_op_thread_pool for the calling thread


class SavedModelLoading:
    """Loads versions with the settings of one server."""

    def __init__(self, settings: Settings) -> None:
        self._config = pb.ConfigProto()
        for pool in settings.thread_pools:
            self._config.session_inter_op_thread_pool.add(
                global_name=pool.name, num_threads=pool.num_threads
            )
        self._allowed_paths = settings.sessions.allowed_paths
        self._clusters = settings.clusters
        self._clusters_of = {each.name: each.clusters for each in settings.models if each.clusters}

    def load(self, name: str, version: int, folder: Path) -> SavedModelBundle:
        """Load the SavedModel in a version's folder; raise the same errors as `load_saved_model`.

        Restore and init ops run in the calling thread, which belongs to the load pool. If they were
        queued on that pool and it had only one thread, they would never run.
        """
        options = SessionOptions(
            config=self._config,
            files=FolderGate(self._allowed_paths, write=True),
            clusters=self._clusters_of.get(name, self._clusters),
        )
        run_options = pb.RunOptions(inter_op_thread_pool=_CALLER_THREAD)
        bundle = load_saved_model(options, run_options, str(folder), SERVING_TAGS)
        if isinstance(bundle.session, DirectSession):
            bundle.session.count_memory()  # not before, so that the weights don't count
        return bundle
