"""Host: the other processes of one server on the same host; by default there are none.

`WorkerHost` is that of several processes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from prometheus_client.metrics_core import Metric

from server.access.caller import LOCAL, Caller
from server.access.owner_cells import OF_ONE_PROCESS

# A change of the served models, as JSON; server/models/administration.py makes and reads them.
Change = dict[str, Any]
# Makes a change in this process only, within some seconds.
Apply = Callable[[Change, float | None], Awaitable[None]]


class KeptConfig:
    """The text of the model config file in force, for processes that start later: none do."""

    def keep(self, text: str) -> None:
        """Keep the text; any thread may do so."""

    def kept(self) -> str | None:
        """Return the text that any process of the server has kept last; None if none has."""
        return None


class Host:
    """What one process knows of the others that serve with it. Used from the event loop only."""

    processes = 1
    has_others = False  # processes of this host, or may have
    is_on_ray = False  # sessions are on the nodes of a Ray cluster
    has_replicas = False  # models are replicas of Ray Serve
    id_suffix = ""  # of the ids of sessions in this process
    cells = OF_ONE_PROCESS  # what owners use of their limits
    model_config = KeptConfig()
    # What tells the figures of this process from those of processes on other machines.
    origin: Mapping[str, str] = {}

    @property
    def shares_ports(self) -> bool:
        """Whether other processes of the machine listen on the same gRPC port."""
        return self.processes > 1

    def suffix_of_id(self, timeout_ms: int) -> str:
        """Return what the id of a session here ends with; `timeout_ms` is that of its steps, or 0.

        Steps may have timeouts of their own.
        """
        return self.id_suffix

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Exclude the other processes, for a few instructions."""
        return contextlib.nullcontext()

    def sessions_elsewhere(self) -> int:
        """Return how many sessions the other processes have, with those that are being opened."""
        return 0

    def note_sessions(self, count: int) -> None:
        """Tell the other processes how many sessions this one has."""

    def is_elsewhere(self, session_id: str) -> bool:
        """Return whether a session id is of another process, or of one that has ended."""
        return False

    def serves(self, model: str) -> bool | None:
        """Return whether replicas serve a model, or None if none of them has it."""
        return None

    def not_ready(self) -> list[str]:
        """Return a text for each other process that does not serve yet."""
        return []

    async def ask(self, what: str, caller: Caller = LOCAL) -> list[Any]:
        """Return what each other process says to a caller about `what`, such as "sessions"."""
        return []

    async def metrics_of_others(self, own: Sequence[Metric]) -> list[list[Any]]:
        """Return what the other processes count, those too that have ended; `own` is of this one.

        No counter in the sum of all of them falls. The families of each process are those of
        server/processes/merged_metrics.py.
        """
        return []

    async def metrics_of_nodes(self) -> list[dict[str, tuple[str, str]]] | None:
        """Return the metrics of each process on a node of a Ray cluster, as text; None without one.

        The text is that of server/processes/labelled_metrics.py.
        """
        return None

    def change_turn(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Return the context in which one process changes the served models of all."""
        return contextlib.nullcontext()

    async def tell(self, change: Change, timeout_seconds: float | None = None) -> None:
        """Make the other processes change their models too; raise the error of one that can't."""

    async def follow_changes(self, apply: Apply) -> None:
        """Make the changes that other processes make, for as long as this one serves.

        Where processes are told of them (`tell`), there is nothing to follow.
        """

    def record(self, change: Change) -> None:
        """Keep a change for processes that start later."""


ALONE = Host()
