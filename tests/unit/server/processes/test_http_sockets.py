"""The HTTP port is that of every address which its host has."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

import pytest

from runtime.errors import UnavailableError
from server.processes.http_sockets import http_sockets

IPV4 = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
TWO = [(*IPV4, (address, 0)) for address in ("127.0.0.1", "127.0.0.2", "127.0.0.1")]


def are_found(monkeypatch: pytest.MonkeyPatch, found: list[Any]) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)


def test_a_name_with_several_addresses_has_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    are_found(monkeypatch, TWO)
    with contextlib.ExitStack() as stack:
        first, second = http_sockets(stack, "name", 0)
        (host, port), other = first.getsockname(), second.getsockname()
        assert (host, other) == ("127.0.0.1", ("127.0.0.2", port))
        for address in ((host, port), other):
            with socket.socket() as client:
                client.connect(address)
    assert first.fileno() == second.fileno() == -1


def test_an_address_that_is_taken_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.2", 0)) as taken, contextlib.ExitStack() as stack:
        port = taken.getsockname()[1]
        are_found(monkeypatch, TWO)
        with pytest.raises(
            UnavailableError, match=f"name:{port} for HTTP: Address already in use$"
        ):
            http_sockets(stack, "name", port)


def test_an_address_that_this_machine_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = (*IPV4, ("192.0.2.1", 0))
    are_found(monkeypatch, [lacking, TWO[0]])
    with contextlib.ExitStack() as stack:
        (listener,) = http_sockets(stack, "name", 0)
        assert listener.getsockname()[0] == "127.0.0.1"
    are_found(monkeypatch, [lacking])
    with (
        contextlib.ExitStack() as stack,
        pytest.raises(UnavailableError, match=r"name:0 for HTTP: Cannot assign requested address$"),
    ):
        http_sockets(stack, "name", 0)


@pytest.mark.parametrize("host", ["a..b", "a" * 70])
def test_what_is_no_name_is_an_error(host: str) -> None:
    with contextlib.ExitStack() as stack, pytest.raises(UnavailableError, match="Cannot listen on"):
        http_sockets(stack, host, 0)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_all_addresses_of_ipv6_are_those_of_ipv4_too() -> None:
    with contextlib.ExitStack() as stack:
        (listener,) = http_sockets(stack, "::", 0)
        assert listener.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 0
        socket.create_connection(("127.0.0.1", listener.getsockname()[1])).close()
