"""SeenCounts: what the processes of a server had counted when its metrics were last read.

The sum of a counter would fall when a process ends, or does not answer in time. Prometheus takes
that for a restart of the server, and counts all of it once more. What a process said last is
therefore kept, and stays in the sum when it says nothing more. Only what it counted after that is
lost.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import orjson

from server.processes.merged_metrics import WireFamily, families_to_wire, merged_families

_log = logging.getLogger(__name__)

_TYPES = frozenset({"counter", "histogram", "summary"})  # whose samples only grow
_ENDED = ""  # the key of the sums of all processes that have ended
Kept = dict[str, list[WireFamily]]  # by the key of a process


class SeenCounts:
    """What the processes said last, in a file that they share; in memory if there is none.

    `is_over` returns whether the process of a key has ended. Thread-safe, and processes exclude
    each other.
    """

    def __init__(self, path: Path | None, is_over: Callable[[str], bool]) -> None:
        self._path = path
        self._is_over = is_over
        self._kept: Kept = {}
        self._lock = threading.Lock()  # guards `_kept`, and the file within this process

    @property
    def has_none(self) -> bool:
        """Whether nothing is kept, here or by another process."""
        return self._path is None and not self._kept

    def missing(self, said: Mapping[str, list[WireFamily]]) -> list[list[WireFamily]]:
        """Return the counts of the processes that said nothing, and keep what the others `said`.

        May wait for another process that does so.
        """
        with self._lock, self._excluding_others():
            kept = self._read()
            silent = {key: families for key, families in kept.items() if key not in said}
            over = [key for key in silent if key == _ENDED or self._is_over(key)]
            ended = [silent.pop(key) for key in over]
            if len(ended) > 1:
                ended = [families_to_wire(merged_families(ended))]
            self._kept = {key: _counts(families) for key, families in said.items()} | silent
            if ended:
                self._kept[_ENDED] = ended[0]
            self._write()
        return [*ended, *silent.values()]

    @contextlib.contextmanager
    def _excluding_others(self) -> Iterator[None]:
        if self._path is None:
            yield
            return
        try:
            file = open(self._path.with_suffix(".lock"), "wb")  # noqa: SIM115  # closed below
        except OSError:  # there is no folder any more, or no descriptor
            yield
            return
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _read(self) -> Kept:
        if self._path is None:
            return self._kept
        try:
            kept: Kept = orjson.loads(self._path.read_bytes())
        except FileNotFoundError:
            return self._kept
        except (OSError, ValueError) as error:
            _log.warning("What the processes had counted can't be read: %s", error)
            return self._kept
        return kept

    def _write(self) -> None:
        if self._path is None:
            return
        new = self._path.with_suffix(".new")
        try:  # replaced as a whole, so that a full disk leaves the one before
            new.write_bytes(orjson.dumps(self._kept))
            new.replace(self._path)
        except OSError as error:
            _log.info("What the processes have counted can't be kept: %s", error)


def _counts(families: list[WireFamily]) -> list[WireFamily]:
    return [family for family in families if family[2] in _TYPES]
