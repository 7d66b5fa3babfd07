"""A port is kept for those that share it, and for nobody else."""

from __future__ import annotations

import contextlib
import socket

import pytest

from runtime.errors import UnavailableError
from server.processes.reserved_port import reserved_port

pytestmark = pytest.mark.skipif(
    not hasattr(socket, "SO_REUSEPORT"), reason="ports can't be shared on this system"
)
HOST = "127.0.0.1"


def test_who_shares_a_port_may_listen_on_it() -> None:
    with contextlib.ExitStack() as stack:
        number = reserved_port(stack, HOST, 0)
        assert number > 0
        with pytest.raises(OSError, match="in use"), socket.create_server((HOST, number)):
            pass
        with socket.create_server((HOST, number), reuse_port=True) as listener:
            # The socket that keeps the port does not listen, so that it takes no connection.
            for _ in range(10):
                with socket.create_connection((HOST, number)):
                    listener.accept()[0].close()
    with contextlib.ExitStack() as stack:
        assert reserved_port(stack, HOST, number) == number


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server((HOST, 0), reuse_port=True) as taken, contextlib.ExitStack() as stack:
        number = taken.getsockname()[1]
        with pytest.raises(UnavailableError, match=f"Cannot listen on {HOST}:{number} for gRPC"):
            reserved_port(stack, HOST, number)


def test_a_host_that_is_unknown_is_an_error() -> None:
    with contextlib.ExitStack() as stack, pytest.raises(UnavailableError, match="Cannot listen on"):
        reserved_port(stack, "no such host", 8500)
