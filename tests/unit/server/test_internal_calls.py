"""What a process says to another one is meant for the caller that the other one names."""

from __future__ import annotations

import asyncio
import pathlib
from typing import Any

import pytest

from server.access.caller import LOCAL, Caller, Role, told_caller
from server.internal_calls import InternalCalls
from server.processes.host_table import HostTable
from server.processes.session_ids import Place
from server.processes.socket_files import http_socket
from server.processes.worker_host import WorkerHost
from tests.unit.server.unix_server import serving


class _Application:
    """The application behind the socket, which passes nothing on here."""

    answer_now = None


def said_to(caller: Caller, folder: pathlib.Path) -> list[Any]:
    """The answers of the one other process, which says for whom it was asked."""
    table = HostTable.create(2)
    table.begin(1, 17)
    host, place = WorkerHost(table, Place(0, 0), folder), Place(1, 0)
    says = {"caller": lambda known: [*told_caller(known), known.is_authenticated]}
    calls = InternalCalls(_Application(), says, None, host)  # type: ignore[arg-type] # no more is called

    async def scenario() -> list[Any]:
        async with serving(http_socket(folder, place), calls):
            said = await host.ask("caller", caller)
            await host.close()
            return said

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("caller", "expected"),
    [
        (LOCAL, (None, {"predict", "sessions", "admin"}, False)),
        (Caller("monitoring", frozenset(), is_authenticated=True), ("monitoring", set(), True)),
        (
            Caller("alice@a/b+c=|d", frozenset({Role.PREDICT}), is_authenticated=True),
            ("alice@a/b+c=|d", {"predict"}, True),
        ),
        (
            Caller("root", frozenset({Role.ADMIN, Role.SESSIONS}), is_authenticated=True),
            ("root", {"admin", "sessions"}, True),
        ),
    ],
    ids=["nobody", "no roles", "one role", "two roles"],
)
def test_another_process_knows_the_caller(
    caller: Caller, expected: tuple[str | None, set[str], bool], tmp_path: pathlib.Path
) -> None:
    [(owner, roles, is_authenticated)] = said_to(caller, tmp_path)
    assert (owner, set(roles), is_authenticated) == expected
