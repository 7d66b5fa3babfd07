"""FolderConfig: the text of the model config file in force, in the folder of the processes."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from server.host import KeptConfig

_log = logging.getLogger(__name__)


class FolderConfig(KeptConfig):
    """The text that the processes of a server keep in `folder`; this one has a slot.

    Until `begin_folder`, if the folder is not there yet, the text is in memory only.
    """

    def __init__(self, folder: Path, slot: int, *, has_folder: bool) -> None:
        self._path = folder / "models.config"
        self._new = folder / f"models.config.{slot}"  # of this process only
        self._has_folder = has_folder
        self._text: str | None = None
        self._lock = threading.Lock()

    def begin_folder(self) -> None:
        """Write what was kept before the folder was there."""
        with self._lock:
            self._has_folder = True
            self._write()

    def keep(self, text: str) -> None:
        """Keep the text, which later processes start with; any thread may do so."""
        with self._lock:
            self._text = text
            self._write()

    def _write(self) -> None:
        if self._text is None or not self._has_folder:
            return
        try:  # replaced as a whole, so that nobody reads a part
            self._new.write_text(self._text, encoding="utf-8")
            self._new.replace(self._path)
        except OSError as error:
            _log.warning("Processes that start later read the model config file afresh: %s", error)

    def kept(self) -> str | None:
        """Return the text that any process has kept last; None if none has."""
        try:
            return self._path.read_text(encoding="utf-8")
        except OSError:
            return None
