"""The second server of a mixed load, which is drained and started again while requests run."""

from __future__ import annotations

import re
import time

from bench.mixed_load.clients import BalancedClient, Balancer
from bench.mixed_load.sender import Address
from bench.mixed_load.tally import Tally
from bench.soak.record import Failed
from bench.soak.run import faults_in
from tests.integration.server_process import ServerProcess

LARGE_BODY = 200_000  # numbers; a request takes some ten milliseconds
LARGE_CLIENTS = 2
HEAD_START_SECONDS = 0.5  # of the large bodies before the signal
READY_SECONDS = 60
POLL_SECONDS = 0.05


class SecondServer:
    """A server that is started, drained by SIGTERM, and started again.

    `running` has how many requests ran at each signal, `faults` what else went wrong.
    """

    def __init__(self, balancer: Balancer, tally: Tally, config: str) -> None:
        self._balancer, self._config = balancer, config
        self._large = [
            BalancedClient(tally, balancer, "REST predict", 0.0, LARGE_BODY)
            for _ in range(LARGE_CLIENTS)
        ]
        self.running: list[int] = []
        self.faults: list[str] = []
        self._server = self._started()

    def drain_and_restart(self) -> None:
        """Send SIGTERM beside large bodies, wait for the end, and start another server."""
        for client in self._large:
            client.start()
        try:
            time.sleep(HEAD_START_SECONDS)
            code = self._server.stop()
        finally:
            for client in self._large:
                client.stop()
        self._ended(code)
        self._server = self._started()

    def end(self) -> None:
        """Drain the server for the last time."""
        self._balancer.set_second(None)
        self._ended(self._server.stop())

    def kill(self) -> None:
        """Kill the process if it still runs."""
        self._server.end()

    def _ended(self, code: int) -> None:
        self._server.end()  # the whole log has been read then
        log = self._server.log
        found = re.search(r"Draining: (\d+) requests", "".join(log))
        self.running.append(int(found[1]) if found else 0)
        self.faults += faults_in(log)
        if code:
            self.faults.append(f"the second server ended with {code}")

    def _started(self) -> ServerProcess:
        server = ServerProcess(f"--config={self._config}")
        address = Address(server.http_address, server.grpc_address.removeprefix("grpc://"))
        self._balancer.set_second(address)
        end = time.monotonic() + READY_SECONDS
        while not self._balancer.poll():
            if time.monotonic() > end:
                server.end()
                raise Failed("NOT_READY", "the second server does not get ready")
            time.sleep(POLL_SECONDS)
        return server
