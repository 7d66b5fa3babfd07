"""RequestPlace: which requests belong to the background process, by what their heads say.

A request of low priority that names its priority in the header X-Priority belongs there if it is

* a prediction of a model whose signatures only read: the background process has models of its own,
  so what a step changed would be changed for few,
* the opening of a session, which then lives there, or
* a call on a session that does.

While the background process and another one do not serve the same versions, predictions belong to
the other one: it shows which versions are available.

Guarantees: used from one event loop; whatever is unusual about a head belongs to other processes.
"""

from __future__ import annotations

import asyncio
import logging
import re
import weakref
from collections.abc import Collection
from typing import Protocol
from urllib.parse import unquote

from runtime.api import DirectSession, RunRequest
from runtime.errors import OpError
from server.connections.one_by_one import length_of_request
from server.models.manager import ModelManager
from server.models.model_version import ModelVersion
from server.processes.session_ids import Place, place_of
from server.rest.model_paths import parse_model_path

_log = logging.getLogger(__name__)

# Signatures that name an operation, which no request can fetch.
_OF_LOADING = {"__saved_model_init_op", "__saved_model_train_op"}
_END_OF_HEAD = b"\r\n\r\n"
_PRIORITY = re.compile(rb"\r\nx-priority:[ \t]*([!-~]+)[ \t]*\r\n", re.IGNORECASE)
_MODEL = re.compile(r"POST (/v1/models/[!-~]+?:(?:predict|classify|regress)) HTTP/1\.1\Z")
_INFER = re.compile(r"POST /v2/models/([^/?#\s]+)(?:/versions/(\d{1,18}))?/infer HTTP/1\.1\Z")
_SESSION = re.compile(r"POST /v1/sessions(?:/([^/:?#\s]+)[!-~]*)? HTTP/1\.1\Z")


class Background(Protocol):
    """What is known of the background process."""

    @property
    def background(self) -> Place:
        """Its place."""

    @property
    def has_same_models(self) -> bool:
        """Whether it serves the versions and labels that other processes serve."""


class RequestPlace:
    """Looks at heads for one process; `priorities` are the names of those of low priority."""

    def __init__(self, priorities: Collection[str], models: ModelManager, host: Background) -> None:
        self._priorities = frozenset(each.encode() for each in priorities)
        self._models = models
        self._host = host
        # Whether a version only reads; None while it is being looked at.
        self._only_reads: weakref.WeakKeyDictionary[ModelVersion, bool | None] = (
            weakref.WeakKeyDictionary()
        )
        self._looks: set[asyncio.Task[None]] = set()

    def is_background(self, data: bytes) -> bool:
        """Return whether a request belongs to the background process; `data` begins with it.

        Its length must be known, so that what follows it goes where that belongs.
        """
        found = _PRIORITY.search(data, 0, data.find(_END_OF_HEAD) + len(_END_OF_HEAD))
        if found is None or found[1] not in self._priorities:
            return False
        if length_of_request(data) is None:
            return False
        line = data[: data.find(b"\r\n")].decode("latin-1")
        if session := _SESSION.match(line):
            return session[1] is None or place_of(unquote(session[1])) == self._host.background
        try:
            version = self._version(line)
        except OpError:
            return False
        return version is not None and self.takes(version)

    def takes(self, version: ModelVersion) -> bool:
        """Return whether predictions of a version, which are of low priority, belong there."""
        return self._host.has_same_models and self._reads(version)

    def _version(self, line: str) -> ModelVersion | None:
        if model := _MODEL.match(line):
            target = parse_model_path("POST", model[1])
            return self._models.find(target.name, target.version, target.label)
        if infer := _INFER.match(line):
            number = None if infer[2] is None else int(infer[2])
            return self._models.find(unquote(infer[1]), number)
        return None

    async def look_at_all(self) -> None:
        """Look at every version that serves now."""
        for version in list(self._models.available_versions()):
            if self._only_reads.get(version) is None:
                await self._look(version)

    async def only_reads(self, version: ModelVersion) -> bool:
        """Return whether all signatures of a version only read, as soon as that is known."""
        if self._only_reads.get(version) is None:
            await self._look(version)
        return bool(self._only_reads[version])

    def _reads(self, version: ModelVersion) -> bool:
        """Return whether all signatures are known to read only; have them looked at if not."""
        if version in self._only_reads:
            return bool(self._only_reads[version])
        self._only_reads[version] = None
        task = asyncio.get_running_loop().create_task(self._look(version))
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)
        return False

    async def _look(self, version: ModelVersion) -> None:
        # Looking may compile steps, which takes long.
        self._only_reads[version] = await asyncio.to_thread(_only_reads, version)


def _only_reads(version: ModelVersion) -> bool:
    try:
        session = version.session
        return isinstance(session, DirectSession) and not any(
            session.has_lasting_effect(
                RunRequest(dict.fromkeys(each.feed_names.values()), list(each.fetch_names.values()))
            )
            for name, each in version.signatures.items()
            if name not in _OF_LOADING
        )
    except OpError as error:
        _log.info("What model %s does to its state is not known: %s", version.name, error.message)
        return False
