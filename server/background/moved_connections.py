"""Connections that one process hands over to another, with what their clients have sent so far.

A message has the descriptor of a connection, what was received of its next request, and how often
it has been handed over. The bytes are in a file in memory, whose descriptor is a second one, if
they are many.

Guarantees: used from one event loop; a connection that can't be handed over stays where it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from server.connections.connection_limits import Moved

_log = logging.getLogger(__name__)

_HEADER = struct.Struct("<II")  # how often it was handed over, and the slot of the sender
_MOST_BYTES = 32 << 10  # of a message; a datagram socket takes 208 KiB by default
_QUEUE = 16  # messages that are received in one callback


def send_connection(path: Path, descriptor: int, moved: Moved) -> bool:
    """Send a connection to the process that listens at `path`; return whether that was possible.

    The caller then closes its own descriptor.
    """
    data, descriptors = moved.data, [descriptor]
    with contextlib.ExitStack() as stack:
        try:
            if len(data) > _MOST_BYTES:
                memory = os.memfd_create("runstep-moved")
                stack.callback(os.close, memory)
                with open(memory, "wb", closefd=False) as file:
                    file.write(data)
                descriptors.append(memory)
                data = b""
            sender = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            sender.setblocking(False)
            sender.connect(str(path))
            socket.send_fds(sender, [_HEADER.pack(moved.times, moved.sender), data], descriptors)
        except OSError as error:
            _log.debug("A connection can't be handed over: %s", error)
            return False
    return True


class ConnectionReceiver:
    """Receives connections at `path`; `make` makes the protocol of each."""

    def __init__(self, path: Path, make: Callable[[], asyncio.Protocol]) -> None:
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[object]] = set()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(str(path))
        self._loop.add_reader(self._socket, self._receive)

    def _receive(self) -> None:
        for _ in range(_QUEUE):
            try:
                message, descriptors, _, _ = socket.recv_fds(
                    self._socket, _HEADER.size + _MOST_BYTES, 2
                )
            except BlockingIOError:
                return
            except OSError as error:  # such as too many open files
                _log.warning("A connection that was handed over is lost: %s", error)
                return
            if descriptors:
                self._begin(message, descriptors)

    def _begin(self, message: bytes, descriptors: list[int]) -> None:
        connection = socket.socket(fileno=descriptors[0])
        connection.setblocking(False)
        times, sender = _HEADER.unpack_from(message)
        data = message[_HEADER.size :]
        if len(descriptors) > 1:
            with open(descriptors[1], "rb") as file:
                file.seek(0)
                data = file.read()

        def make() -> asyncio.Protocol:
            protocol = self._make()
            protocol.moved = Moved(data, times, sender)  # type: ignore[attr-defined] # HttpProtocol
            return protocol

        task: asyncio.Task[object] = self._loop.create_task(
            self._loop.connect_accepted_socket(make, connection)
        )
        self._beginning.add(task)
        task.add_done_callback(self._has_begun)

    def _has_begun(self, task: asyncio.Task[object]) -> None:
        self._beginning.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.info("A connection ended while it was handed over: %r", task.exception())

    def close(self) -> None:
        """Receive no more; what waits is received first."""
        self._loop.remove_reader(self._socket)
        self._receive()
        self._socket.close()
