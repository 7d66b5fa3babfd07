"""Load a SavedModel for serving, with the same access to files as the steps of clients."""

from __future__ import annotations

import collections
import logging
import re
from pathlib import Path

import protos as pb
from runtime.api import (
    DirectSession,
    FolderGate,
    SavedModelBundle,
    SessionOptions,
    load_saved_model,
    unrestored_state,
)
from runtime.errors import NotFoundError
from server.settings import Settings
from server.text_message import read_text_message

_log = logging.getLogger(__name__)

_CPU = re.compile(r"(^|[/:])cpu(:|$)")  # in the name of a device
_MAX_DEVICES = 3  # that are named in the log
_MAX_NAMES = 3  # of variables and tables in an error
_INDEX = "variables/variables.index"
_CALLER_THREAD = -1  # RunOptions.inter_op_thread_pool for the calling thread


class SavedModelLoading:
    """Loads versions with the settings of one server."""

    def __init__(self, settings: Settings) -> None:
        self._config = pb.ConfigProto()
        if settings.session_config_file is not None:
            read_text_message(settings.session_config_file, self._config)
        del self._config.session_inter_op_thread_pool[:]
        self._config.allow_soft_placement = True  # of graphs that were built for other devices
        self._tags = settings.model_loading.tags
        for pool in settings.thread_pools:
            self._config.session_inter_op_thread_pool.add(
                global_name=pool.name, num_threads=pool.num_threads
            )
        self._allowed_paths = settings.sessions.allowed_paths
        self._clusters = settings.clusters
        self._clusters_of = {each.name: each.clusters for each in settings.models if each.clusters}
        self._engine = settings.engine_of()
        self._engine_of = {each.name: settings.engine_of(each) for each in settings.models}

    def load(self, name: str, version: int, folder: Path) -> SavedModelBundle:
        """Load the SavedModel in a version's folder; raise the same errors as `load_saved_model`.

        Raises NotFoundError too if signatures use variables or tables whose checkpoint is not
        there: the version would fail every request, though its files are perhaps being copied.

        Restore and init ops run in the calling thread, which belongs to the load pool. If they were
        queued on that pool and it had only one thread, they would never run.
        """
        choice = self._engine_of.get(name, self._engine)
        options = SessionOptions(
            config=self._config,
            files=FolderGate(self._allowed_paths, write=True, setting="sessions.allowed_paths"),
            clusters=self._clusters_of.get(name, self._clusters),
            engine=choice.engine,
            precision=choice.precision,
        )
        run_options = pb.RunOptions(inter_op_thread_pool=_CALLER_THREAD)
        bundle = load_saved_model(options, run_options, str(folder), self._tags)
        if isinstance(bundle.session, DirectSession):
            _check_state(bundle)
            bundle.session.count_memory()  # not before, so that the weights don't count
            bundle.session.prepare_engine()
            _log_other_devices(name, version, bundle)
        return bundle


def _check_state(bundle: SavedModelBundle) -> None:
    """Close the session and raise NotFoundError if variables or tables lack their checkpoint."""
    missing = unrestored_state(bundle)
    if not missing:
        return
    bundle.session.close()
    more = f" and {len(missing) - _MAX_NAMES} more" if len(missing) > _MAX_NAMES else ""
    raise NotFoundError(
        f"Expected a checkpoint with the values of {', '.join(missing[:_MAX_NAMES])}{more}; "
        f"{bundle.export_dir}/{_INDEX} is not there"
    )


def _log_other_devices(name: str, version: int, bundle: SavedModelBundle) -> None:
    """Log the devices that nodes request but this server does not have; they run on the CPU."""
    graph = bundle.meta_graph_def.graph_def
    nodes = [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
    requested = collections.Counter(node.device for node in nodes if node.device)
    others = {
        device: count for device, count in requested.items() if not _CPU.search(device.lower())
    }
    if others:
        _log.warning(
            "Version %d of model %s: %d nodes request %s, which is not here; they run on the CPU",
            version, name, sum(others.values()), ", ".join(sorted(others)[:_MAX_DEVICES]),
        )  # fmt: skip
