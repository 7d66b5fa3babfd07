"""Every attack of docs/robustness.md in small, against a real server with small limits."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from server.rest.session_docs import half_plus_two_graph
from server.settings import Settings
from tests.attacks.attack import Attack
from tests.attacks.page import PAGE, with_table
from tests.attacks.rows import ATTACKS
from tests.attacks.small import attacked_server, merged, small_settings
from tests.attacks.watch import MemoryWatch
from tests.integration.rest_server import RUN_Y

# The server of the tests needs less than this, whatever attacks it, with what the allocator keeps.
MAX_BYTES = 400_000_000
FAULT = re.compile(r"Traceback|Internal error")


class Served:
    """A server with small limits; `witness` is a session that no attack may harm."""

    def __init__(self, settings: Mapping[str, Any], folder: pathlib.Path) -> None:
        self._ending = contextlib.ExitStack()
        running = attacked_server(settings, folder)
        self.process, self.target = self._ending.enter_context(running)
        self.witness = self.target.open_session(half_plus_two_graph())
        self.end = self._ending.close

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process.process.poll() is None


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[Mapping[str, Any]], Served]]:
    """A function that returns the server of some settings, which it starts at the first call."""
    running: dict[str, Served] = {}

    def of(settings: Mapping[str, Any]) -> Served:
        text = json.dumps(settings, sort_keys=True)
        if text in running and not running[text].is_alive:
            running.pop(text).end()  # the watch killed it
        if text not in running:
            running[text] = Served(settings, tmp_path_factory.mktemp("attacks"))
        return running[text]

    yield of
    for each in running.values():
        each.end()


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
