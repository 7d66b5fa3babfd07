"""The table of gRPC services in the documents is that of the server."""

from __future__ import annotations

import pathlib

from server.access.http_rules import Need
from server.access.rpc_rules import rpc_need_of
from server.app import make_services
from server.rpc.services import rpc_services
from server.settings import Settings

PAGE = pathlib.Path(__file__).parents[4] / "docs" / "grpc.md"
# What a role in the table begins with, and the needs that it may stand for.
ROLES = {
    "none": {Need.NOTHING},
    "any known caller": {Need.KNOWN},
    "`admin`": {Need.KNOWN},  # decided by server/models/administration.py
    "`predict`": {Need.PREDICT},
    "`sessions`": {Need.SESSIONS, Need.GRAPHS},
}


def documented() -> dict[str, dict[str, str]]:
    """The role of each method in the table, by service; the method "all" stands for all."""
    table: dict[str, dict[str, str]] = {}
    service = ""
    lines = PAGE.read_text().split("| --- | --- | --- |\n", 1)[1].split("\n\n", 1)[0]
    for line in lines.splitlines():
        names, methods, role = (cell.strip() for cell in line.strip("|").split("|"))
        service = names or service
        listed = ["all"] if methods.startswith("all:") else methods.split(", ")
        for name in service.split(", "):
            table.setdefault(name.strip("`"), {}).update(dict.fromkeys(listed, role))
    return table


def test_the_table_has_every_method_with_what_it_requires() -> None:
    table = documented()
    found = {each.name: each.methods for each in rpc_services(make_services(Settings(models=[])))}
    assert table.keys() == found.keys()
    for service, methods in found.items():
        roles = table[service]
        if "all" not in roles:
            assert roles.keys() == methods.keys(), service
        for method in methods:
            role = roles.get(method) or roles["all"]
            needs = next(needs for begin, needs in ROLES.items() if role.startswith(begin))
            assert rpc_need_of(f"/{service}/{method}") in needs, (service, method)
