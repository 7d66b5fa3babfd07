"""Models: the SavedModels of a host, each loaded once, from which sessions are opened.

Guarantees: thread-safe; a model is loaded by one thread while others that want it wait; a model
whose file has changed is loaded again, and sessions of the old one keep what they have.
"""

from __future__ import annotations

import collections
import concurrent.futures
import os
import threading
from collections.abc import Sequence

from runtime.foundation.errors import OpError
from runtime.saved_model.loader import SavedModelBundle, load_saved_model
from runtime.sessions.direct.direct_session import DirectSession
from runtime.sessions.runtime_session import RuntimeSession
from runtime.sessions.session_options import SessionOptions

MAX_MODELS = 32  # those opened last; their templates are kept in memory
_FILES = ("saved_model.pb", "saved_model.pbtxt")
_Key = tuple[str, tuple[str, ...], tuple[int, ...]]


class Models:
    """The loaded models by folder, tags and time of the file's last change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _loads
        self._loads: collections.OrderedDict[_Key, concurrent.futures.Future[SavedModelBundle]] = (
            collections.OrderedDict()
        )

    def open_session(
        self, options: SessionOptions, export_dir: str, tags: Sequence[str]
    ) -> DirectSession:
        """Return a new session in the state right after loading; raise what loading raises."""
        bundle = self._bundle(os.path.abspath(export_dir), tuple(sorted(tags)))
        session, _ = bundle.open_session(options)
        return _direct(session)

    def __len__(self) -> int:
        return len(self._loads)

    def _bundle(self, export_dir: str, tags: tuple[str, ...]) -> SavedModelBundle:
        key = (export_dir, tags, _changed_at(export_dir))
        with self._lock:
            load = self._loads.get(key)
            is_mine = load is None
            if load is None:
                load = self._loads[key] = concurrent.futures.Future()
            self._loads.move_to_end(key)
        if is_mine:
            try:
                load.set_result(load_saved_model(SessionOptions(), None, export_dir, tags))
            except BaseException as error:
                with self._lock:
                    del self._loads[key]
                load.set_exception(error)
            self._drop_oldest()
        try:
            return load.result()
        except OpError as error:  # each caller raises a copy of its own
            raise error.copy() from None

    def _drop_oldest(self) -> None:
        with self._lock:
            loaded = [key for key, load in self._loads.items() if load.done()]
            for key in loaded[: max(0, len(self._loads) - MAX_MODELS)]:
                del self._loads[key]


def _changed_at(export_dir: str) -> tuple[int, ...]:
    changed = []
    for name in _FILES:
        try:
            changed.append(os.stat(os.path.join(export_dir, name)).st_mtime_ns)
        except OSError:
            continue
    return tuple(changed)


def _direct(session: RuntimeSession) -> DirectSession:
    if not isinstance(session, DirectSession):
        raise TypeError(f"expected a DirectSession, got {type(session).__name__}")
    return session
