"""Every attack of docs/robustness.md in small, against a real server with small limits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from server.rest.session_docs import half_plus_two_graph
from server.settings import Settings
from tests.attacks.attack import Attack, Target
from tests.attacks.page import PAGE, with_table
from tests.attacks.rows import ATTACKS
from tests.attacks.small import merged, small_settings
from tests.attacks.watch import MemoryWatch
from tests.integration.rest_server import RUN_Y
from tests.integration.server_process import ServerProcess

# The server of the tests needs less than this, whatever attacks it, with what the allocator keeps.
MAX_BYTES = 400_000_000
FAULT = re.compile(r"Traceback|Internal error| ERROR ")


class Served:
    """A server with small limits; `witness` is a session that no attack may harm."""

    def __init__(self, process: ServerProcess) -> None:
        self.process = process
        self.target = Target(process.http_address, process.grpc_address, process.process.pid)
        self.witness = self.target.open_session(half_plus_two_graph())


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[Mapping[str, Any]], Served]]:
    """A function that returns the server of some settings, which it starts at the first call."""
    running: dict[str, Served] = {}

    def of(settings: Mapping[str, Any]) -> Served:
        text = json.dumps(settings, sort_keys=True)
        if text in running and running[text].process.process.poll() is not None:
            running.pop(text).process.end()  # the watch killed it
        if text not in running:
            file = tmp_path_factory.mktemp("attacks") / "server.yaml"
            file.write_text(text)
            process = ServerProcess(f"--config={file}")
            process.wait_for("Loaded version 1 of model half_plus_two")
            running[text] = Served(process)
        return running[text]

    yield of
    for each in running.values():
        each.process.end()


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.key)
def test_an_attack_is_answered_and_harms_nobody(
    attack: Attack, served: Callable[[Mapping[str, Any]], Served]
) -> None:
    server = served(small_settings(attack))
    target, log = server.target, server.process.log
    lines = len(log)
    with MemoryWatch(target.process_id, MAX_BYTES) as watch:
        answer = attack.prepare(target, attack.small)()
    assert not watch.is_killed
    assert answer in attack.answers
    assert target.request("/healthz", method="GET")[0] == 200
    assert target.run(server.witness, RUN_Y) == "200"
    assert [line for line in log[lines:] if FAULT.search(line)] == []


def test_every_attack_has_a_key_of_its_own() -> None:
    keys = [attack.key for attack in ATTACKS]
    assert sorted(keys) == sorted(set(keys))


def test_every_limit_is_a_setting() -> None:
    named = {limit for attack in ATTACKS for limit in attack.limits}
    missing = []
    for name in named:
        value: Any = Settings()
        for part in name.split("."):
            value = getattr(value, part, missing)
        if value is missing:
            missing.append(name)
    assert missing == []


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text, "run python -m bench.attacks --rewrite"


def test_settings_are_merged_by_section() -> None:
    one, other = {"rest": {"port": 1, "host": "a"}}, {"rest": {"port": 2}, "grpc": {"port": 3}}
    expected = {"rest": {"port": 2, "host": "a"}, "grpc": {"port": 3}}
    assert merged(one, other) == expected
    assert one == {"rest": {"port": 1, "host": "a"}}
