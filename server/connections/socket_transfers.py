"""SocketTransfers: a thread that moves large bodies between sockets and memory.

An event loop that receives 24 MB copies each of a hundred parts four times, 0.15 ms for a part, and
all other requests wait for it. The thread receives into the memory that the application reads, in
system calls that hold no interpreter lock; it takes the lock for some microseconds of each part.
A system call that copies is not preempted on most kernels, so the thread leaves one processor to
all others: the p99 of tiny predictions that another process of the server answers meanwhile is
1.2 ms instead of 1.5 (2 processors), and as many bodies are received.

Guarantees: `begin` may be called from any thread, everything else of a transfer from the event loop
that it belongs to. The thread ends when there was nothing to do for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import socket
import threading
from typing import Protocol

import numpy as np

from runtime.api import leave_one_processor, make_way

Bytes = bytes | bytearray | memoryview
PART_BYTES = 1 << 18  # of one system call: 0.1 ms
# While transfers wait, also those of which less has arrived than their socket is to report.
_LOOK_SECONDS = 0.5
_IDLE_SECONDS = 10.0  # without a transfer, after which the thread ends


class SocketLike(Protocol):
    """A stream socket, or what an event loop shows of it."""

    @property
    def family(self) -> int:
        """The family of its address."""

    def fileno(self) -> int:
        """Return the descriptor."""


class Transfer:
    """Bytes that are received into `view`, or sent from it, on a connected stream socket.

    The caller must not use the socket in that direction until `ended` is done. Its result is
    whether all of them were transferred; then, or when the other end has closed the connection, or
    after it was cancelled, `view` is not used any more. `begin` are bytes that were received
    already; the thread copies them to the begin of `view`.
    """

    def __init__(
        self, connection: SocketLike, view: np.ndarray, *, is_sending: bool, begin: Bytes = b""
    ) -> None:
        self.view, self.is_sending = view, is_sending
        self.count = self._begun_with = len(begin)  # of the bytes transferred
        self.loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[bool] = self.loop.create_future()
        # One of its own, because the connection may be closed while the thread waits for it.
        family = connection.family
        self.socket = socket.socket(family, socket.SOCK_STREAM, 0, os.dup(connection.fileno()))
        self._lock = threading.Lock()  # held during a system call; guards the fields below
        self._begin = begin
        self.is_over = False
        self._least = 0  # bytes that the system waits for before it reports that some have arrived

    @property
    def left(self) -> int:
        """The number of bytes that are not transferred yet."""
        return len(self.view) - self.count

    @property
    def new_count(self) -> int:
        """The number of bytes that were transferred since the transfer began."""
        return self.count - self._begun_with

    def cancel(self) -> None:
        """End the transfer; see `SocketTransfers.cancel`."""
        with self._lock:
            self.is_over = True
        if not self.ended.done():
            self.ended.set_result(False)

    def advance(self) -> bool:
        """Transfer a part, without waiting; return whether the transfer is over (the thread)."""
        with self._lock:
            if self._begin and not self.is_over:
                self.view[: self.count] = np.frombuffer(self._begin, np.uint8)
                self._begin = b""
            if not self.is_over:
                self.is_over = not self._transfer_part() or not self.left
            return self.is_over

    def _transfer_part(self) -> bool:
        """Return whether the other end is still there."""
        part = self.view[self.count : self.count + PART_BYTES].data
        if not part.nbytes:
            return True
        try:
            if self.is_sending:
                count = self.socket.send(part)
            else:
                count = self.socket.recv_into(part)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.count += count
        return count > 0

    def wait_for_much(self) -> None:
        """Let the system report what has arrived when it is a whole part, or the rest."""
        least = 1 if self.is_sending else max(1, min(PART_BYTES, self.left))
        if least != self._least:
            self._least = least
            self._set_least(least)

    def _set_least(self, count: int) -> None:
        if not self.is_sending:
            with contextlib.suppress(OSError):  # not every system, nor kind of socket, has it
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)

    def end(self) -> None:
        """Release the socket, and tell the event loop (the thread)."""
        self._set_least(1)
        self.socket.close()
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        if not self.ended.done():
            self.ended.set_result(not self.left)


class SocketTransfers:
    """All transfers of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the fields below
        self._new: list[Transfer] = []
        self._thread: threading.Thread | None = None
        self._wake: socket.socket | None = None  # written to wake the thread

    def begin(self, transfer: Transfer) -> None:
        """Begin a transfer."""
        with self._lock:
            self._new.append(transfer)
            if self._thread is None:
                woken, self._wake = socket.socketpair()
                self._thread = threading.Thread(
                    target=self._run, args=(woken,), name="transfers", daemon=True
                )
                self._thread.start()
        self.wake()

    async def complete(self, transfer: Transfer) -> bool:
        """Begin a transfer and wait for its end; return whether all bytes were transferred."""
        self.begin(transfer)
        try:
            return await transfer.ended
        finally:
            if not transfer.is_over:
                self.cancel(transfer)

    def cancel(self, transfer: Transfer) -> None:
        """End a transfer; its `count` does not change any more."""
        transfer.cancel()
        self.wake()

    def wake(self) -> None:
        """Let the thread look for transfers that were begun or cancelled."""
        with self._lock, contextlib.suppress(OSError):  # it has much to look for already
            if self._wake is not None:
                self._wake.send(b"\0", socket.MSG_DONTWAIT)

    def _run(self, woken: socket.socket) -> None:
        make_way()
        leave_one_processor()
        with selectors.DefaultSelector() as selector, woken:
            selector.register(woken, selectors.EVENT_READ)
            current: set[Transfer] = set()
            while True:
                found = selector.select(_LOOK_SECONDS if current else _IDLE_SECONDS)
                ready = {key.data for key, _ in found if key.data is not None}
                is_woken = len(ready) < len(found)
                if is_woken:
                    woken.recv(PART_BYTES)
                elif not found and not current and self._is_left():
                    return
                for transfer in self._take_new():
                    kind = selectors.EVENT_WRITE if transfer.is_sending else selectors.EVENT_READ
                    selector.register(transfer.socket, kind, transfer)
                    current.add(transfer)
                    ready.add(transfer)
                # One that was cancelled is not reported.
                for transfer in tuple(current) if is_woken or not found else ready:
                    if transfer.advance():
                        current.discard(transfer)
                        selector.unregister(transfer.socket)
                        transfer.end()
                    else:
                        transfer.wait_for_much()

    def _take_new(self) -> list[Transfer]:
        with self._lock:
            new, self._new = self._new, []
        return new

    def _is_left(self) -> bool:
        """Return whether the thread is to end."""
        with self._lock:
            if self._new:
                return False
            if self._wake is not None:
                self._wake.close()
            self._thread = self._wake = None
            return True


transfers = SocketTransfers()
