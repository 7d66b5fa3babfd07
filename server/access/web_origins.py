"""Protect against web pages: which `Host` and `Origin` headers a request may have.

A page of any site can make a browser send requests to a server on its user's machine. If the server
is bound to loopback, the `Host` must be a loopback name, so that a name of the page's site that
resolves to 127.0.0.1 (DNS rebinding) does not reach it. Wherever the server is bound, a request
that may change something must not come from a page of another host. A page can have the host of the
server by rebinding too, unless that is an address, so a name must be known as the server's.

Source: https://datatracker.ietf.org/doc/html/rfc6454 (Origin); the Fetch standard sends it with
every POST.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

from server.access.access_errors import DeniedError
from server.settings_sections.ports import is_loopback

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_MAX_KNOWN_HOSTS = 64


def host_of(netloc: str) -> str:
    """Return the host of `host:port`, in lower case and without the brackets of an IPv6 address."""
    if netloc.startswith("["):
        return netloc[1:].partition("]")[0].lower()
    return netloc.rpartition(":")[0].lower() if ":" in netloc else netloc.lower()


class WebOrigins:
    """The rules of one server, which is bound to `bound_host`; `hosts` are further names of it.

    The name of the machine, `machine_name`, is also a name of the server.
    """

    def __init__(
        self, bound_host: str, hosts: Iterable[str], machine_name: str | None = None
    ) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        machine_name = socket.gethostname() if machine_name is None else machine_name
        self._names = self._hosts | {bound_host.lower(), machine_name.lower()}
        self.is_local = is_loopback(bound_host)
        # Values of `Host` that `check_host` has found right.
        self.known_hosts: set[bytes] = set()

    def check_host(self, host: bytes | None) -> None:
        """Raise PermissionDeniedError if this server requires another `Host`."""
        text = "" if host is None else host.decode("latin-1")
        name = host_of(text)
        if self.is_local and not is_loopback(name) and name not in self._hosts:
            raise DeniedError(
                f"The server is bound to loopback and has no host {name!r:.80}; "
                "access.hosts names further ones",
                "host",
            )
        if host is not None and len(self.known_hosts) < _MAX_KNOWN_HOSTS:
            self.known_hosts.add(host)

    def check_origin(
        self, method: str, origin: bytes, host: bytes | None, *, has_credentials: bool = False
    ) -> None:
        """Raise PermissionDeniedError if a web page of another host makes a change.

        With credentials, which browsers add to requests for the host that they are for, the host
        of the server is what the request says.
        """
        if method in _SAFE_METHODS:
            return
        scheme, _, netloc = origin.decode("latin-1").partition("://")
        name = host_of(netloc)
        own = host_of("" if host is None else host.decode("latin-1"))
        is_own = name == own and (has_credentials or self._is_known(name))
        is_own = bool(name) and (is_own or (self.is_local and is_loopback(name)))
        if scheme not in ("http", "https") or not (is_own or name in self._hosts):
            raise DeniedError(
                f"A web page of {origin.decode('latin-1')!r:.80} may not make this call; "
                "access.hosts names the hosts whose pages may",
                "origin",
            )

    def _is_known(self, name: str) -> bool:
        """Return whether no page of another site can have this host."""
        return name in self._names or is_loopback(name) or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
