"""An IPv6 address and a port are told apart by brackets."""

from __future__ import annotations

import pytest

from server.addresses import address_of, host_and_port


@pytest.mark.parametrize(
    ("host", "port", "address"),
    [
        ("127.0.0.1", 8501, "127.0.0.1:8501"),
        ("localhost", "8500", "localhost:8500"),
        ("::1", 8501, "[::1]:8501"),
        ("::", 0, "[::]:0"),
        ("fe80::1%eth0", "free", "[fe80::1%eth0]:free"),
    ],
)
def test_host_and_port_are_joined_and_split(host: str, port: int | str, address: str) -> None:
    assert address_of(host, port) == address
    assert host_and_port(address) == (host, str(port))


def test_brackets_are_written_once() -> None:
    assert address_of("[::1]", 8501) == "[::1]:8501"


def test_an_address_without_a_port_has_no_host() -> None:
    assert host_and_port("8501") == ("", "8501")
