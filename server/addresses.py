"""HOST:PORT as URLs and gRPC write it: the digits of an IPv6 address are in brackets."""

from __future__ import annotations


def address_of(host: str, port: int | str) -> str:
    """Return `host:port`, or `[host]:port` if the host is an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def host_and_port(address: str) -> tuple[str, str]:
    """Return the host, without brackets, and the port of an address; the inverse of `address_of`.

    The host of an address without a port is "".
    """
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), port
