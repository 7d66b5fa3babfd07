"""Messages between two processes over a socket: a JSON header and buffers of bytes.

On the socket, a message consists of the number of buffers, the length of each buffer (all u64,
little-endian), and the bytes of the buffers; the first buffer is the header. Large buffers are sent
from, and received into, the caller's memory without a copy. The interpreter lock is released while
bytes are transferred.

The caller must ensure that at most one thread sends and at most one receives at a time. Receiving
raises ConnectionError if the other process has ended.
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
_MAX_COALESCED_BYTES = 1 << 14  # bytes; buffers up to this length are sent together
_RECEIVE_BUFFER = 1 << 16  # bytes; size of the buffer that reads from the socket fill

Buffer = bytes | bytearray | memoryview


class MessageChannel:
    """One end of a connected stream socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._reader = connection.makefile("rb", _RECEIVE_BUFFER)
        self._lengths: list[int] = []  # lengths of the current message's unreceived buffers

    def send(self, header: object, buffers: Sequence[Buffer] = ()) -> None:
        """Send one message; `header` must be JSON data, each buffer must be contiguous bytes."""
        text = _encode_header(header)
        lengths = [len(text), *map(len, buffers)]
        pending = bytearray(_COUNT.pack(len(lengths)))
        pending += struct.pack(f"<{len(lengths)}Q", *lengths)
        for buffer in (text, *buffers):
            if len(buffer) <= _MAX_COALESCED_BYTES:
                pending += buffer
                continue
            self._socket.sendall(pending)
            pending.clear()
            self._socket.sendall(buffer)
        self._socket.sendall(pending)

    def receive(self) -> Any:
        """Receive the next message and return its header.

        The caller must receive all buffers of the message before the next call of `receive`.
        """
        assert not self._lengths, "buffers of the last message were left"
        (count,) = _COUNT.unpack(self._read(_COUNT.size))
        length, *self._lengths = struct.unpack(f"<{count}Q", self._read(8 * count))
        return _decode_header(self._read(length))

    def receive_buffer(self) -> bytes:
        """Receive the next buffer of the message and return it."""
        return self._read(self._lengths.pop(0))

    def receive_into(self, target: memoryview) -> None:
        """Receive the next buffer of the message into `target`; the lengths must be equal."""
        length = self._lengths.pop(0)
        assert length == len(target), f"a buffer of {length} bytes for {len(target)}"
        done = 0
        while done < length:
            count = self._reader.readinto(target[done:])  # type: ignore[attr-defined]
            if not count:
                raise ConnectionError("The other process has gone")
            done += count

    def close(self) -> None:
        """Shut down both directions; a thread blocked in `receive` gets a ConnectionError."""
        with contextlib.suppress(OSError):  # raised if the other process has closed the connection
            self._socket.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Release the socket, which no thread may be using."""
        self._reader.close()
        self._socket.close()

    def _read(self, length: int) -> bytes:
        data: bytes = self._reader.read(length)
        if len(data) != length:
            raise ConnectionError("The other process has gone")
        return data


def _encode_header(header: object) -> bytes:
    """Encode the header as JSON.

    Lone surrogates, which error messages may contain, are written by `json`; orjson refuses them.
    """
    try:
        return orjson.dumps(header)
    except orjson.JSONEncodeError:
        return json.dumps(header).encode()


def _decode_header(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)
