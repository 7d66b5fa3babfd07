"""Messages between two processes over a socket: a small header and buffers of bytes.

A message is the number of buffers and the length of each (u64, little-endian, the header's JSON
first), then their bytes. Large buffers go to and from their arrays without a copy, and the
interpreter lock is free while bytes move: other threads run on.

Guarantees: one thread sends and one receives at a time (the caller's business); a peer that is
gone is a ConnectionError.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from collections.abc import Sequence
from typing import Any

import orjson

_COUNT = struct.Struct("<Q")
_COALESCED = 1 << 14  # bytes; shorter buffers are sent together
_RECEIVE_BUFFER = 1 << 16  # bytes

Buffer = bytes | bytearray | memoryview


class MessageChannel:
    """One end of a connected stream socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._reader = connection.makefile("rb", _RECEIVE_BUFFER)
        self._lengths: list[int] = []  # of buffers that have not been received yet

    def send(self, header: Any, buffers: Sequence[Buffer] = ()) -> None:
        """Send one message; `header` is what JSON can say, `buffers` are contiguous bytes."""
        text = _text_of(header)
        lengths = [len(text), *map(len, buffers)]
        pending = bytearray(_COUNT.pack(len(lengths)))
        pending += struct.pack(f"<{len(lengths)}Q", *lengths)
        for buffer in (text, *buffers):
            if len(buffer) <= _COALESCED:
                pending += buffer
                continue
            self._socket.sendall(pending)
            pending.clear()
            self._socket.sendall(buffer)
        self._socket.sendall(pending)

    def receive(self) -> Any:
        """The header of the next message; its buffers have to be received next, each once."""
        assert not self._lengths, "buffers of the last message were left"
        (count,) = _COUNT.unpack(self._read(_COUNT.size))
        length, *self._lengths = struct.unpack(f"<{count}Q", self._read(8 * count))
        return _value_of(self._read(length))

    def receive_buffer(self) -> bytes:
        """The next buffer of the message."""
        return self._read(self._lengths.pop(0))

    def receive_into(self, target: memoryview) -> None:
        """The next buffer of the message, into `target` of its length."""
        length = self._lengths.pop(0)
        assert length == len(target), f"a buffer of {length} bytes for {len(target)}"
        done = 0
        while done < length:
            count = self._reader.readinto(target[done:])  # type: ignore[attr-defined]
            if not count:
                raise ConnectionError("The other process has gone")
            done += count

    def close(self) -> None:
        """End both directions; a thread that waits in `receive` gets a ConnectionError."""
        with contextlib.suppress(OSError):  # the peer was faster
            self._socket.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Let go of the socket; no thread may wait in it."""
        self._reader.close()
        self._socket.close()

    def _read(self, length: int) -> bytes:
        data: bytes = self._reader.read(length)
        if len(data) != length:
            raise ConnectionError("The other process has gone")
        return data


def _text_of(header: Any) -> bytes:
    """As JSON. Error messages may hold what is no Unicode, which only the slower way can say."""
    try:
        return orjson.dumps(header)
    except orjson.JSONEncodeError:
        return json.dumps(header).encode()


def _value_of(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)
