"""Connections that never end what they begin."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import time
from collections.abc import Callable

from tests.attacks.attack import Attack, Prepare, Target

PREDICT = b"POST /v1/models/half_plus_two:predict HTTP/1.1\r\nHost: localhost\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF_SENT = PREDICT + b"Content-Length: 100\r\n\r\n{"
# A request that is as long as its answer.
METADATA = (
    b"GET /v1/models/half_plus_two/metadata HTTP/1.1\r\nHost: localhost\r\nX-Padding: "
    + b"x" * 4000 + b"\r\n\r\n"
)  # fmt: skip
CHUNK = 1 << 16
ENDED = ("400 INVALID_ARGUMENT", "408", "431", "408 DEADLINE_EXCEEDED", "closed")
# A server of the tests with these limits ends such connections within a second.
LIMITS = {
    "rest": {
        "max_connections": 50,
        "max_header_bytes": 1 << 16,
        "max_headers": 100,
        "header_seconds": 0.3,
        "body_seconds": 0.3,
        "keep_alive_seconds": 0.3,
    }
}


def answer_of(connection: socket.socket, seconds: float) -> str:
    """Return the status of the answer that comes within these seconds, or how there was none."""
    connection.settimeout(seconds)
    try:
        head = connection.recv(CHUNK)
    except TimeoutError:
        return "silence"
    except OSError:
        return "closed"
    return head.split(b" ")[1].decode() if head.startswith(b"HTTP/1.1 ") else "closed"


def flood(begin: bytes, part: bytes) -> Prepare:
    """Send `begin`, then `part` again and again up to a number of bytes."""

    def prepare(target: Target, size: int) -> Callable[[], str]:
        parts = part * (CHUNK // len(part))

        def attack() -> str:
            with target.connect() as connection:
                try:
                    connection.sendall(begin)
                    for _ in range(size // len(parts)):
                        connection.sendall(parts)
                except OSError:
                    return "closed"
                return answer_of(connection, 2)

        return attack

    return prepare


def silent(begin: bytes) -> Prepare:
    """Send `begin` and wait for a number of seconds."""

    def prepare(target: Target, seconds: float) -> Callable[[], str]:
        def attack() -> str:
            with target.connect() as connection:
                connection.sendall(begin)
                return answer_of(connection, seconds)

        return attack

    return prepare


def drop_by_drop(begin: bytes, drop: bytes) -> Prepare:
    """Send `begin`, then a few bytes at a time, for a number of seconds."""

    def prepare(target: Target, seconds: float) -> Callable[[], str]:
        def attack() -> str:
            end = time.monotonic() + seconds
            with target.connect() as connection:
                connection.sendall(begin)
                while time.monotonic() < end:
                    answer = answer_of(connection, 0.05)
                    if answer != "silence":
                        return answer
                    try:
                        connection.sendall(drop)
                    except OSError:
                        return "closed"
            return "silence"

        return attack

    return prepare


def idle_after_an_answer(target: Target, seconds: float) -> Callable[[], str]:
    def attack() -> str:
        with target.connect() as connection:
            connection.sendall(HEALTH)
            answer_of(connection, seconds)
            return answer_of(connection, seconds)

    return attack


def many(begin: bytes) -> Prepare:
    """Open a number of connections that send `begin`; return how a new client is answered."""

    def prepare(target: Target, count: int) -> Callable[[], str]:
        allow_descriptors(count + 100)

        def attack() -> str:
            with contextlib.ExitStack() as opened:
                for _ in range(count):
                    with contextlib.suppress(OSError):
                        connection = opened.enter_context(target.connect())
                        connection.sendall(begin)
                end = time.monotonic() + 60
                while time.monotonic() < end:  # until the server has ended some of them
                    with contextlib.suppress(OSError), target.connect() as other:
                        other.sendall(HEALTH)
                        answer = answer_of(other, 1)
                        if answer == "200":
                            return f"200, {descriptors(target, count)}"
            return "silence"

        return attack

    return prepare


def descriptors(target: Target, count: int) -> str:
    """Return whether the server holds fewer descriptors than connections were opened."""
    held = len(os.listdir(f"/proc/{target.process_id}/fd"))
    return "connections ended" if held < count else f"{held} descriptors held"


def allow_descriptors(count: int) -> None:
    """Let this process have so many descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


def unread_answers(target: Target, count: int) -> Callable[[], str]:
    """Send requests without reading an answer, until the server takes no more of them."""

    def attack() -> str:
        with target.connect() as connection:
            connection.settimeout(0.5)
            try:
                for _ in range(count):
                    connection.sendall(METADATA * 16)
            except OSError:
                return "closed"
            return "all were taken"

    return attack


ATTACKS = (
    Attack(
        "endless_header", "one header of {} bytes that does not end", "refused at the limit",
        ("rest.max_header_bytes",), ENDED,
        flood(PREDICT + b"X-Long: ", b"x"), 4_000_000, 157_000_000, LIMITS,
    ),
    Attack(
        "many_headers", "headers without end, {} bytes of them", "refused at the limit",
        ("rest.max_headers", "rest.max_header_bytes"), ENDED,
        flood(PREDICT, b"X-Many: 1\r\n"), 4_000_000, 157_000_000, LIMITS,
    ),
    Attack(
        "long_path", "a path of {} bytes", "refused at the limit",
        ("rest.max_header_bytes",), (*ENDED, "414"),
        flood(b"GET /", b"x"), 4_000_000, 157_000_000, LIMITS,
    ),
    Attack(
        "unfinished_header", "a connection that sends half a header and is silent", "ended",
        ("rest.header_seconds",), ENDED, silent(PREDICT), 10, 60, LIMITS,
    ),
    Attack(
        "silent", "a connection that sends nothing", "ended",
        ("rest.header_seconds",), ENDED, silent(b""), 10, 60, LIMITS,
    ),
    Attack(
        "slow_header", "headers that arrive a few bytes at a time", "ended",
        ("rest.header_seconds",), ENDED, drop_by_drop(PREDICT, b"X-A: 1\r\n"), 10, 60, LIMITS,
    ),
    Attack(
        "unfinished_body", "half a body, then silence", "ended",
        ("rest.body_seconds",), ENDED, silent(HALF_SENT), 10, 60, LIMITS,
    ),
    Attack(
        "idle", "a connection that is idle after an answer", "ended",
        ("rest.keep_alive_seconds",), ENDED, idle_after_an_answer, 10, 60, LIMITS,
    ),
    Attack(
        "half_sent_bodies", "{} connections, each with half a body",
        "the oldest are ended or further ones refused; others are answered",
        ("rest.max_connections", "rest.body_seconds"), ("200, connections ended",),
        many(HALF_SENT), 200, 8000, LIMITS,
    ),
    Attack(
        "many_connections", "{} connections that send nothing",
        "the oldest are ended or further ones refused; others are answered",
        ("rest.max_connections", "rest.header_seconds"), ("200, connections ended",),
        many(b""), 200, 8000, LIMITS,
    ),
    Attack(
        "unread_answers", "requests without end whose answers are never read",
        "no more are read until the client reads", (), ("closed",), unread_answers, 1000, 100_000,
    ),
)  # fmt: skip
