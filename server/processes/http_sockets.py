"""http_sockets(): the sockets of the HTTP port, one for each address that its host has."""

from __future__ import annotations

import contextlib
import errno
import socket

from server.processes.reserved_port import addresses_of, refused

_BACKLOG = 2048
_ANY_IPV6 = "::"
_LACKING = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})


def http_sockets(stack: contextlib.ExitStack, host: str, port: int) -> list[socket.socket]:
    """Listen on a port of every address of a host, the same one; 0 is any free one.

    A host of `::` alone has the port of IPv4 too, as that of gRPC has, whatever the system's
    default is. An address of a kind that this machine lacks, such as that of IPv6 of `localhost` in
    a container without it, is left out if there is another one. The sockets are closed with
    `stack`. Raises UnavailableError if an address is taken, or if there is none.
    """
    found = addresses_of("HTTP", host, port)
    has_both = len(found) == 1 and found[0][1][0] == _ANY_IPV6 and socket.has_dualstack_ipv6()
    sockets: list[socket.socket] = []
    lacking: OSError | None = None
    for family, address in found:
        number = sockets[0].getsockname()[1] if sockets else port
        try:
            opened = socket.create_server(
                (address[0], number, *address[2:]),
                family=family,
                backlog=_BACKLOG,
                dualstack_ipv6=has_both,
            )
        except OSError as error:
            if error.errno not in _LACKING:
                raise refused("HTTP", host, port, error) from error
            lacking = error
        else:
            sockets.append(stack.enter_context(opened))
    if not sockets and lacking is not None:
        raise refused("HTTP", host, port, lacking) from lacking
    return sockets
