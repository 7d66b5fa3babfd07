"""OwnNode: whether the Ray node that a front end belongs to still runs.

A program that has joined a cluster belongs to the node on its machine, through whose shared memory
its large tensors go. It goes on when the node ends, and Ray ends it without a word at the next
tensor of more than 100 kB, or after it could not reach the node for a while.

Guarantees: used from one thread.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

from server.addresses import host_and_port

_log = logging.getLogger(__name__)

CONNECT_SECONDS = 2.0


class OwnNode:
    """The node whose port is `address`, HOST:PORT.

    `says_closed` returns whether an error is the port's fault.
    """

    def __init__(self, address: str, says_closed: Callable[[OSError], bool]) -> None:
        self._address = address
        self._says_closed = says_closed
        self._fault = ""

    def fault(self) -> str:
        """Return why the node can't be used, or ""; what changes is logged."""
        host, port = host_and_port(self._address)
        try:
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
            fault = ""
        except OSError as error:
            if not self._says_closed(error):
                _log.info("It can't be looked at the Ray node %s: %s", self._address, error)
                return self._fault
            fault = (
                f"sessions on Ray: the Ray node {self._address} that this server belongs to does "
                f"not answer: {error}"
            )
        if fault and not self._fault:
            _log.error("%s; Ray may end this process at any time: start both again", fault)
        elif self._fault and not fault:
            _log.warning("The Ray node %s answers again", self._address)
        self._fault = fault
        return fault
