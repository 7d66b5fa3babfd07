"""WorkerHost: one of several processes that serve as one server, and its way to the others.

Each process listens on a Unix socket of its own, in a folder that only its user can open. The
background process (server/background) is one more of them, which may not be there.

Guarantees: used from one event loop. What is asked of a process that does not answer in
ANSWER_SECONDS, or that ends meanwhile, is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http
import logging
import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson
from prometheus_client.metrics_core import Metric

from runtime.api import HostTurns, priority_gate, shared_files
from runtime.errors import NotFoundError, OpError, UnavailableError
from server.access.caller import LOCAL, Caller
from server.access.owner_cells import OwnerCell, OwnerCells
from server.host import Change, Host
from server.processes.beats import (
    BEAT_SECONDS,
    LATE_SECONDS,
    SILENT_SECONDS,
    beat_now,
    seconds_since_beat,
)
from server.processes.folder_config import FolderConfig
from server.processes.host_changes import HostChanges
from server.processes.host_metrics import HostMetrics
from server.processes.host_table import HostTable, Row, WorkerState
from server.processes.merged_metrics import WireFamily
from server.processes.patience import Patience, no_deadline
from server.processes.process_client import ProcessClient
from server.processes.session_ids import Place, place_of, suffix_of
from server.processes.socket_files import http_socket, moved_socket, remove_sockets_of
from server.sessions.session_errors import SessionGoneError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_log = logging.getLogger(__name__)

ANSWER_SECONDS = 2.0
INTERNAL_PREFIX = "/internal/"
RPC_PREFIX = f"{INTERNAL_PREFIX}rpc"  # of the path of a gRPC method that is called over HTTP
CERTIFICATE_NAMES = b"x-runstep-certificate-names"  # of the client that made the call
# The supervisor notices at once that a process has ended; on a busy machine it may run late.
_ENDING_SECONDS = 1.0
_LOOK_SECONDS = 0.01


class SharedCells(OwnerCells):
    """What owners use in all processes."""

    def __init__(self, table: HostTable, slot: int) -> None:
        self.slot = slot
        self._table = table
        self.locked = table.locked  # type: ignore[method-assign] # the same call

    def cell(self, owner: str) -> OwnerCell:
        """Return the cell of an owner; one of this process if there are too many owners."""
        found = self._table.cell(owner)
        if found is None:
            _log.warning("There are too many owners with limits to count them in all processes")
            return OwnerCell()
        return found


class WorkerHost(Host):
    """The process in `place`; `folder` has the sockets."""

    has_others = True

    def __init__(self, table: HostTable, place: Place, folder: Path) -> None:
        self.processes = table.count
        self.place = place
        self.id_suffix = suffix_of(place)
        self.locked = table.locked  # type: ignore[method-assign] # the same call
        self.table = table
        self.folder = folder
        # The priorities whose requests the background process answers; none if there can't be one.
        self.background_priorities: frozenset[str] = frozenset()
        self.turns: dict[str, int] = {}  # of pools of low priority: see `share_low_priority`
        self._row = table.rows[place.slot]
        self._others = table.others(place.slot)
        self.cells = SharedCells(table, place.slot)
        self._known: dict[int, tuple[Place, ProcessClient]] = {}  # by the slot
        self.model_config = FolderConfig(folder, place.slot, has_folder=True)
        self.changes = HostChanges(self)
        self._metrics = HostMetrics(self)
        # Answers the calls of gRPC that the others pass on over HTTP; None if there are none.
        self.passed_rpcs: ASGIApp | None = None

    @property
    def moved_path(self) -> Path:
        """Where this process receives connections that other processes hand over."""
        return moved_socket(self.folder, self.place)

    def moved_path_of(self, place: Place) -> Path:
        """Return where another process receives connections."""
        return moved_socket(self.folder, place)

    @property
    def socket_path(self) -> Path:
        """Where this process receives the HTTP calls of the others."""
        return http_socket(self.folder, self.place)

    @property
    def background(self) -> Place:
        """The place of the background process, which may not be there."""
        return Place(self.table.count, self.table.background.generation)

    @property
    def is_background(self) -> bool:
        """Whether this is the background process."""
        return self.place.slot == self.processes

    def place_in(self, slot: int) -> Place:
        """Return the place of the process that a slot has now."""
        return Place(slot, self.table.rows[slot].generation)

    @property
    def is_alone(self) -> bool:
        """Whether no other process has any session."""
        return self.processes == 1 and not self.is_background and not self.has_background

    @property
    def has_background(self) -> bool:
        """Whether the background process serves."""
        return self.table.background.state == WorkerState.READY

    @property
    def background_answers(self) -> bool:
        """Whether the background process serves, and its event loop has run lately."""
        background = self.table.background
        return self.has_background and seconds_since_beat(background) < LATE_SECONDS

    async def show_beats(self) -> None:
        """Show the other processes that this one runs, for as long as it does."""
        while True:
            self._row.beat = beat_now()
            await asyncio.sleep(BEAT_SECONDS)

    def patience(
        self, place: Place, deadline: Callable[[], float | None] = no_deadline
    ) -> Patience:
        """Return how long a call waits for a process: see `Patience`."""
        return Patience(self.table.rows[place.slot], place, deadline)

    def listens(self, place: Place) -> bool:
        """Return whether a process is there: one that was killed is READY until that is noticed."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            error = probe.connect_ex(str(http_socket(self.folder, place)))
        return error in (0, errno.EAGAIN)  # it has not accepted those before

    def note_models(self, digest: int) -> None:
        """Tell the others what this process serves."""
        self._row.models = digest

    @property
    def has_same_models(self) -> bool:
        """Whether this process and the background process (or the first one) serve the same.

        Each of them looks for new versions by itself. A background process that is not there yet
        will, so that predictions have it started.
        """
        if self.is_background:
            return bool(self._row.models == self.table.rows[0].models)
        return not self.has_background or bool(self._row.models == self.table.background.models)

    def want_background(self) -> None:
        """Have the background process started, if it is not there."""
        self.table.background.is_wanted = 1

    def leave_row(self) -> None:
        """Note that this process drains; write no more, because another one may take its place."""
        if self.table.rows[self.place.slot].generation == self.place.generation:
            self.note_state(WorkerState.DRAINING)
        self._row = Row()

    @property
    def master(self) -> Place:
        """The process in which TensorFlow's master is: that of the first slot."""
        return Place(0, self.table.rows[0].generation)

    def share_priorities(self) -> None:
        """Let steps of low priority, in every process, wait for those of normal priority."""
        others = self._others

        def publish(steps: int) -> None:
            self._row.pending = steps

        priority_gate.share(publish, lambda: sum(each.pending for each in others))

    def share_low_priority(self, threads: Mapping[str, int]) -> None:
        """Let the steps of these pools take turns with those of the other processes.

        At most as many run at the same time, in all processes, as the pool has `threads`.
        """
        self.turns = dict(threads)
        folder = self.folder / "turns"
        folder.mkdir(exist_ok=True)
        for name, count in threads.items():
            priority_gate.take_turns(name, HostTurns(folder, name, count))

    def share_weights(self) -> None:
        """Let the processes have the weights of models once, in files in the folder."""
        folder = self.folder / "weights"
        folder.mkdir(exist_ok=True)
        shared_files.use_folder(folder)

    def note_state(self, state: WorkerState) -> None:
        """Tell the others the state of this process."""
        self._row.state = state

    # --- connections --------------------------------------------------------------------------

    def note_connections(self, count: int) -> None:
        """Tell the other processes how many connections this one has; -1 if it does not accept."""
        self._row.connections = count

    def fewest_connections(self) -> int | None:
        """Return the smallest number among the other processes; None if no other accepts."""
        return min(
            (each.connections for each in self._others if each.connections >= 0), default=None
        )

    # --- sessions -----------------------------------------------------------------------------

    def sessions_elsewhere(self) -> int:
        """Return how many sessions the other processes have, with those that are being opened."""
        return sum(each.sessions for each in self._others)

    def note_sessions(self, count: int) -> None:
        """Tell the other processes how many sessions this one has."""
        self._row.sessions = count

    def is_elsewhere(self, session_id: str) -> bool:
        """Return whether a session id is of another process, or of one that has ended."""
        place = place_of(session_id)
        return place is not None and place != self.place

    def process_of(self, session_id: str) -> Place:
        """Return the place of the process of a session.

        Raises SessionGoneError if it has ended, and NotFoundError if there never was such a
        process.
        """
        place = place_of(session_id)
        if place is None or place.slot > self.processes:
            raise NotFoundError(f"Session {session_id} is not found.")
        row = self.table.rows[place.slot]
        if place.generation < row.generation:
            raise self._gone(place)
        # The background process, and one that takes the place of another, may not be there yet.
        if place.generation > row.generation or not row.process_id:
            raise NotFoundError(f"Session {session_id} is not found.")
        return place

    async def lost(self, place: Place) -> OpError:
        """Return the error of a call that a process did not answer."""
        row = self.table.rows[place.slot]
        for _ in range(round(_ENDING_SECONDS / _LOOK_SECONDS)):
            if row.generation != place.generation:
                return self._gone(place)
            await asyncio.sleep(_LOOK_SECONDS)
        return UnavailableError(f"Process {place.slot} of the server does not answer")

    def _gone(self, place: Place) -> SessionGoneError:
        ending = self.table.ending_of(place.slot)
        if place.generation + 1 < self.table.rows[place.slot].generation:
            ending = "ended"  # what is known is how a later one ended
        return SessionGoneError(f"Session has been lost: its process of the server {ending}.")

    # --- the other processes ------------------------------------------------------------------

    def not_ready(self) -> list[str]:
        """Return a text for each other process that does not serve yet."""
        found = []
        for slot, row in enumerate(self.table.workers):
            if slot == self.place.slot:
                continue
            if row.state != WorkerState.READY:
                found.append(f"process {slot} is {WorkerState(row.state).name.lower()}")
            elif seconds_since_beat(row) >= SILENT_SECONDS:
                found.append(f"process {slot} does not answer")
        return found

    @property
    def another_serves(self) -> bool:
        """Whether another process serves, apart from the background process."""
        return any(
            row.state == WorkerState.READY and seconds_since_beat(row) < SILENT_SECONDS
            for slot, row in enumerate(self.table.workers)
            if slot != self.place.slot
        )

    async def ask(self, what: str, caller: Caller = LOCAL) -> list[Any]:
        """Return what each other process says to a caller, in the order of their slots."""
        return list((await self.answers(what, caller)).values())

    async def metrics_of_others(self, own: Sequence[Metric]) -> list[list[WireFamily]]:
        """Return what the other processes count, those too that have ended; `own` is of this one.

        No counter in the sum of all of them falls.
        """
        return await self._metrics.of_others(own)

    async def answers(self, what: str, caller: Caller = LOCAL) -> dict[Place, Any]:
        """Return what each other process says to a caller, of those that answer."""
        places = self.running()
        answers = await asyncio.gather(*(self._ask(place, what, caller) for place in places))
        said = zip(places, answers, strict=True)
        return {place: answer for place, answer in said if answer is not None}

    async def _ask(self, place: Place, what: str, caller: Caller) -> Any:
        who = {"owner": caller.owner, "roles": ",".join(caller.roles)}
        target = f"{INTERNAL_PREFIX}{what}"
        if caller.is_authenticated:
            target += f"?{urlencode(who)}"
        try:
            asking = self.client_of(place).exchange("GET", target)
            status, content = await asyncio.wait_for(asking, ANSWER_SECONDS)
            if status != http.HTTPStatus.OK:
                raise ConnectionError(f"it answers with {status}")
            return orjson.loads(content)
        except (OSError, TimeoutError) as error:
            _log.info("Process %d does not say its %s: %r", place.slot, what, error)
            return None

    # --- changes of the served models -----------------------------------------------------------

    def change_turn(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Return the context that excludes changes by other processes."""
        return self.changes.turn()

    def record(self, change: Change) -> None:
        """Keep a change, in the turn of this process, for processes that start later."""
        self.changes.record(change)

    async def tell(self, change: Change, timeout_seconds: float | None = None) -> None:
        """Make the other processes change too; raise what `HostChanges.tell` raises."""
        await self.changes.tell(change, timeout_seconds)

    # --- calls ----------------------------------------------------------------------------------

    def running(self) -> list[Place]:
        """Return the places of the other processes."""
        return [
            Place(slot, row.generation)
            for slot, row in enumerate(self.table.rows)
            if slot != self.place.slot and row.process_id
        ]

    def client_of(self, place: Place) -> ProcessClient:
        """Return the client of another process, whether that is there or not."""
        known = self._known.get(place.slot)
        if known is not None and known[0] == place:
            return known[1]
        if known is not None:
            known[1].close()
        client = ProcessClient(http_socket(self.folder, place))
        self._known[place.slot] = place, client
        return client

    def removes_sockets(self, *, is_orphan: bool) -> bool:
        """Return whether this process, which ends, is to remove the folder of all processes.

        It is if the one that does so has ended before it (`is_orphan`). The background process of
        several is supervised by one of them, beside which others use the folder.
        """
        return is_orphan and not (self.is_background and self.processes > 1)

    def remove_sockets(self) -> None:
        """Remove the folder of all processes, which nobody else does any more."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def remove_own_sockets(self) -> None:
        """Remove the sockets of this process, which ends."""
        remove_sockets_of(self.folder, self.place)

    async def close(self) -> None:
        """Close the connections to the other processes."""
        for _, client in self._known.values():
            client.close()
