"""Protect against web pages: which `Host` and `Origin` headers a request may have.

A page of any site can make a browser send requests to a server on its user's machine. If the server
is bound to loopback, the `Host` must be a loopback name, so that a name of the page's site that
resolves to 127.0.0.1 (DNS rebinding) does not reach it. Wherever the server is bound, a request
that may change something must not come from a page of another host.

Source: https://datatracker.ietf.org/doc/html/rfc6454 (Origin); the Fetch standard sends it with
every POST.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from runtime.errors import PermissionDeniedError

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_MAX_KNOWN_HOSTS = 64


def is_loopback(host: str) -> bool:
    """Return whether a host name, or an address that a server binds, is this machine only."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(netloc: str) -> str:
    """Return the host of `host:port`, in lower case and without the brackets of an IPv6 address."""
    if netloc.startswith("["):
        return netloc[1:].partition("]")[0].lower()
    return netloc.rpartition(":")[0].lower() if ":" in netloc else netloc.lower()


class WebOrigins:
    """The rules of one server, which is bound to `bound_host`; `hosts` are further names of it."""

    def __init__(self, bound_host: str, hosts: Iterable[str]) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self.is_local = is_loopback(bound_host)
        # Values of `Host` that `check_host` has found right.
        self.known_hosts: set[bytes] = set()

    def check_host(self, host: bytes | None) -> None:
        """Raise PermissionDeniedError if this server requires another `Host`."""
        text = "" if host is None else host.decode("latin-1")
        name = host_of(text)
        if self.is_local and not is_loopback(name) and name not in self._hosts:
            raise PermissionDeniedError(
                f"The server is bound to loopback and has no host {name!r:.80}; "
                "access.hosts names further ones"
            )
        if host is not None and len(self.known_hosts) < _MAX_KNOWN_HOSTS:
            self.known_hosts.add(host)

    def check_origin(self, method: str, origin: bytes, host: bytes | None) -> None:
        """Raise PermissionDeniedError if a web page of another host makes a change."""
        if method in _SAFE_METHODS:
            return
        scheme, _, netloc = origin.decode("latin-1").partition("://")
        name = host_of(netloc)
        own = host_of("" if host is None else host.decode("latin-1"))
        is_own = bool(name) and (name == own or (self.is_local and is_loopback(name)))
        if scheme not in ("http", "https") or not (is_own or name in self._hosts):
            raise PermissionDeniedError(
                f"A web page of {origin.decode('latin-1')!r:.80} may not make this call; "
                "access.hosts names the hosts whose pages may"
            )
