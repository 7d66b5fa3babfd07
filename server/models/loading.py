"""Loads one version of a served model from its folder.

The load runs in the calling thread, which is one of the load pool's: restore and init steps never
take a thread that answers requests. The session may read the model's own folder and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import protos as pb
from runtime.api import FolderGate, SavedModelBundle, SessionOptions, load_saved_model
from server.settings import ThreadPoolSettings

DEFAULT_TAGS = ("serve",)
_IN_CALLING_THREAD = -1  # RunOptions.inter_op_thread_pool


class SavedModelLoader:
    """The manager's loader. `thread_pools` become the pools of the serving sessions, in order."""

    def __init__(
        self, thread_pools: Sequence[ThreadPoolSettings], tags: Sequence[str] = DEFAULT_TAGS
    ) -> None:
        self._tags = tuple(tags)
        self._config = pb.ConfigProto()
        for pool in thread_pools:
            self._config.session_inter_op_thread_pool.add(
                global_name=pool.name, num_threads=pool.num_threads
            )

    def __call__(self, name: str, version: int, path: Path) -> SavedModelBundle:
        """Load `path`; raises what `load_saved_model` raises."""
        config = pb.ConfigProto()
        config.CopyFrom(self._config)
        config.experimental.session_metadata.name = name
        config.experimental.session_metadata.version = version
        return load_saved_model(
            SessionOptions(config=config, files=FolderGate((str(path),))),
            pb.RunOptions(inter_op_thread_pool=_IN_CALLING_THREAD),
            str(path),
            self._tags,
        )
