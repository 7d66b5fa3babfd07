"""reserved_port(): a gRPC port that one process keeps for others, which listen on it.

check_free() says of a port what would keep this process from listening on it.
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any

from runtime.errors import UnavailableError
from server.addresses import address_of
from server.settings import Settings


def reserved_port(stack: contextlib.ExitStack, host: str, port: int) -> int:
    """Keep a port that several processes can listen on, and return its number; 0 is any free one.

    It is kept until `stack` is closed. Raises UnavailableError if that is not possible.
    """
    number = check_free("gRPC", host, port)
    family, address = resolved("gRPC", host, port)
    try:
        kept = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        kept.bind((address[0], number))
    except OSError as error:
        raise refused("gRPC", host, port, error) from error
    return number


def check_free(front: str, host: str, port: int, *, is_shared: bool = False) -> int:
    """Return the number of a port that nobody has, or, if `is_shared`, that others only share.

    0 is any free one. Raises UnavailableError with the system's reason; `front` is what the port is
    for.
    """
    family, address = resolved(front, host, port)
    option = socket.SO_REUSEPORT if is_shared else socket.SO_REUSEADDR
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, option, 1)
            tried.bind(address)
            return int(tried.getsockname()[1])
    except OSError as error:
        raise refused(front, host, port, error) from error


def check_ports(settings: Settings) -> None:
    """Raise UnavailableError if a port of the settings can't be had, before models are loaded."""
    grpc, host = settings.grpc, settings.rest.host
    wanted = [("HTTP", host, settings.rest.port)]
    if not grpc.channel_arguments.get("grpc.so_reuseport"):  # others may have it then
        wanted += [
            ("gRPC", host, grpc.port),
            ("gRPC", grpc.tensorflow_host, grpc.tensorflow_port or 0),
        ]
    for front, where, port in wanted:
        if isinstance(port, int) and port != 0:
            check_free(front, where, port)


def refused(front: str, host: str, port: int, error: OSError) -> UnavailableError:
    """Return the error of an address that can't be had, with the system's reason."""
    # Python repeats the address in its text; the number of a name that is unknown is negative.
    number = error.errno or 0
    reason = os.strerror(number) if number > 0 else error.strerror
    return UnavailableError(f"Cannot listen on {address_of(host, port)} for {front}: {reason}")


def resolved(front: str, host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """Return the family and the first address to bind; raise what `addresses_of` raises."""
    family, address = addresses_of(front, host, port)[0]
    return family, (str(address[0]), int(address[1]))


def addresses_of(
    front: str, host: str, port: int
) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    """Return the families and the addresses to bind; raise UnavailableError for an unknown host."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise refused(front, host, port, error) from error
    except UnicodeError as error:  # of a name that is none
        raise refused(front, host, port, OSError(0, str(error))) from error
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))
