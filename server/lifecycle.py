"""The phases of a server: starting, serving, draining.

Above a limit of resident memory the response to new work is 429. While the server drains, it is
503, running requests have a grace time to finish, health and metrics are still served, and the
response of `/readyz` is 503. A second signal ends the process at once.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable

from runtime.api import process_account
from runtime.errors import UnavailableError

# While the server drains: how long no call must arrive until the ports close, and at most.
QUIET_SECONDS = 0.1
NOTICE_SECONDS = 2.0


class Phase(enum.Enum):
    """The phases, in their order."""

    STARTING = "starting"
    SERVING = "serving"
    DRAINING = "draining"


class Lifecycle:
    """The phase and the number of requests in flight; used from the event loop only."""

    def __init__(self) -> None:
        self.phase = Phase.STARTING
        self.in_flight = 0
        self.ended = 0  # requests
        self._refused = 0  # requests, since the server drains
        self._closed_ports: list[str] = []
        self._idle = asyncio.Event()
        self._idle.set()

    def expect_port(self, name: str) -> None:
        """Keep the server from being ready until `port_is_open(name)` is called."""
        self._closed_ports.append(name)

    def port_is_open(self, name: str) -> None:
        """Record that a port of `expect_port` is open."""
        self._closed_ports.remove(name)

    def not_ready(self) -> list[str]:
        """Return a text for each expected port that is not open yet."""
        return [f"the {name} port is not open" for name in self._closed_ports]

    def begin_request(self) -> None:
        """Count a request that does work."""
        self.in_flight += 1
        self._idle.clear()

    def end_request(self) -> None:
        """End the request that `begin_request` counted."""
        self.in_flight -= 1
        self.ended += 1
        if not self.in_flight:
            self._idle.set()

    def note_answered(self) -> None:
        """Count a request that was answered as soon as it had arrived."""
        self.ended += 1

    def check_accepting(self, *, frees_memory: bool = False) -> None:
        """Raise UnavailableError or ResourceExhaustedError if the server refuses new work.

        A call that `frees_memory` is taken however little there is.
        """
        if self.phase is Phase.DRAINING:
            self._refused += 1
            raise UnavailableError("The server is draining and takes no new work")
        if not frees_memory:
            process_account.check_new_work()

    @property
    def is_accepting(self) -> bool:
        """Whether new work is taken."""
        return self.phase is not Phase.DRAINING and not process_account.refuses_new_work()

    def begin_serving(self) -> None:
        """Enter the serving phase, unless the server is draining already."""
        if self.phase is Phase.STARTING:
            self.phase = Phase.SERVING

    async def drain(self, grace_seconds: float) -> bool:
        """Refuse new work and wait for running requests.

        Returns False if some requests still run after `grace_seconds`.
        """
        self.phase = Phase.DRAINING
        try:
            await asyncio.wait_for(self._idle.wait(), grace_seconds)
        except TimeoutError:
            return False
        return True

    async def until_noticed(
        self, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        """Wait while clients still send calls, which are refused, for NOTICE_SECONDS at most.

        A client that gets UNAVAILABLE knows that its call was not begun; one whose call arrives
        while the port closes does not.
        """
        if not self.ended:
            return
        for _ in range(round(NOTICE_SECONDS / QUIET_SECONDS)):
            before = self._refused
            await sleep(QUIET_SECONDS)
            if self._refused == before:
                return
