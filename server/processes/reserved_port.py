"""reserved_port(): a gRPC port that one process keeps for others, which listen on it."""

from __future__ import annotations

import contextlib
import socket

from runtime.errors import UnavailableError


def reserved_port(stack: contextlib.ExitStack, host: str, port: int) -> int:
    """Keep a port that several processes can listen on, and return its number; 0 is any free one.

    It is kept until `stack` is closed. Raises UnavailableError if that is not possible.
    """
    family, address = resolved(host, port)
    try:
        with socket.socket(family, socket.SOCK_STREAM) as alone:
            alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            alone.bind(address)  # raises if somebody has it, even to share it
            number = int(alone.getsockname()[1])
        kept = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        kept.bind((address[0], number))
    except OSError as error:
        raise UnavailableError(
            f"Cannot listen on {host}:{port} for gRPC: {error.strerror}"
        ) from error
    return number


def resolved(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """Return the family and the address to bind; raise UnavailableError for an unknown host."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise UnavailableError(f"Cannot listen on {host}:{port}: {error.strerror}") from error
    family, _, _, _, address = found[0]
    return family, (str(address[0]), int(address[1]))
