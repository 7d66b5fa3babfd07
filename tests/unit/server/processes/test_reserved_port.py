"""A port is kept for those that share it, and for nobody else."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

import pytest

from runtime.errors import UnavailableError
from server.processes.reserved_port import check_free, check_ports, reserved_port
from server.settings import Settings

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


@pytest.mark.parametrize("reuse_port", [True, False], ids=["shared", "taken"])
def test_a_port_that_others_share_is_free_to_share_it(reuse_port: bool) -> None:
    with socket.create_server((HOST, 0), reuse_port=reuse_port) as listener:
        number = listener.getsockname()[1]
        if reuse_port:
            assert check_free("gRPC", HOST, number, is_shared=True) == number
            return
        with pytest.raises(UnavailableError, match="Address already in use"):
            check_free("gRPC", HOST, number, is_shared=True)


def test_a_host_that_is_unknown_is_an_error() -> None:
    with contextlib.ExitStack() as stack, pytest.raises(UnavailableError, match="Cannot listen on"):
        reserved_port(stack, "no such host", 8500)


@pytest.mark.parametrize(
    ("front", "section", "key"),
    [("HTTP", "rest", "port"), ("gRPC", "grpc", "port"), ("gRPC", "grpc", "tensorflow_port")],
)
def test_a_taken_port_of_the_settings_is_found(front: str, section: str, key: str) -> None:
    with socket.create_server((HOST, 0), reuse_port=True) as taken:
        number = taken.getsockname()[1]
        ports: dict[str, Any] = {"rest": {"host": HOST, "port": 0}, "grpc": {"port": 0}}
        ports[section][key] = number
        text = f"^Cannot listen on {HOST}:{number} for {front}: Address already in use$"
        with pytest.raises(UnavailableError, match=text):
            check_ports(Settings(**ports))
    check_ports(Settings(**ports))


def test_a_port_that_gRPC_may_share_is_not_checked() -> None:
    with socket.create_server((HOST, 0), reuse_port=True) as taken:
        shared = {"port": taken.getsockname()[1], "channel_arguments": {"grpc.so_reuseport": 1}}
        check_ports(Settings(rest={"host": HOST, "port": "free"}, grpc=shared))  # type: ignore[arg-type] # as YAML
