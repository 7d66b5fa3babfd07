"""DecliningConnection: requests that ask for another protocol are answered in HTTP/1.1.

Java's HttpClient asks for HTTP/2 with every first request to `http://`, also if that has a body. A
server may ignore this (RFC 9110 §7.8), but the parser takes what follows such a head for the other
protocol, and uvicorn loses the body. Here the parser receives the head once more, without the
question.

Guarantee: used from one event loop.
"""

from __future__ import annotations

import contextlib

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.connections.limited_connection import LimitedConnection

_QUESTION = frozenset({b"upgrade", b"http2-settings"})
_INVALID = "Invalid HTTP request received."


class DecliningConnection(LimitedConnection):
    """A connection that remains one of HTTP/1.1."""

    def parse(self, data: bytes) -> None:
        """Let the parser receive data."""
        self._unset_keepalive_if_required()
        rest = memoryview(data)
        try:
            while True:
                try:
                    self.parser.feed_data(rest)
                    return
                except httptools.HttpParserUpgrade as upgrade:
                    if not self.is_declined():
                        return
                    rest = rest[upgrade.args[0] :]
                    head = self._head_without_question()
                    self.parser = new_parser(self)
                    self._begun -= 1
                    self.parser.feed_data(head)
        except httptools.HttpParserError:
            self.logger.warning(_INVALID)
            self.send_400_response(_INVALID)

    def is_declined(self) -> bool:
        """Return whether the head that is complete now is to be received once more."""
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def _head_without_question(self) -> bytes:
        parser = self.parser
        version = parser.get_http_version().encode()
        lines = [b"%b: %b\r\n" % each for each in self.headers if each[0] not in _QUESTION]
        head = parser.get_method(), self.url, version, b"".join(lines)
        return b"%b %b HTTP/%b\r\n%b\r\n" % head


def new_parser(protocol: HttpToolsProtocol) -> httptools.HttpRequestParser:
    """Return a parser between two requests, as uvicorn makes the first one."""
    parser = httptools.HttpRequestParser(protocol)
    with contextlib.suppress(AttributeError):  # httptools before 0.6.3
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser
