"""What the settings say of the background process."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.errors import InvalidArgumentError
from server.background.background_settings import (
    background_settings,
    low_priorities,
    low_priority_turns,
    with_background_port,
)
from server.settings import Settings, ThreadPoolSettings
from server.supervision.divided_settings import divided_settings


def settings_of(**changed: Any) -> Settings:
    return Settings(**changed)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {"low"}),
        ({"rest": {"port": 0}}, set()),
        ({"tls": {"certificate_file": "a", "key_file": "b"}}, set()),
        ({"priorities": {"normal": "online", "a": "background", "b": "background"}}, {"a", "b"}),
        (
            {
                "thread_pools": (
                    {"name": "online"},
                    {"name": "background", "low_priority": True, "own_process": False},
                )
            },
            set(),
        ),
    ],
)
def test_the_priorities_whose_requests_it_answers(
    changed: dict[str, Any], expected: set[str]
) -> None:
    assert low_priorities(settings_of(**changed)) == expected


def test_it_has_no_ports_and_no_child_processes() -> None:
    found = background_settings(settings_of(grpc={"port": 8500}, processes=4))
    assert (found.rest.port, found.grpc.port, found.processes) == (0, 0, 1)
    assert not any(pool.own_process for pool in found.thread_pools)
    assert [pool.name for pool in found.thread_pools] == ["online", "background"]
    assert Settings(**found.model_dump(mode="json")) == found


def test_it_has_the_limits_of_the_process_that_starts_it() -> None:
    """Which is one of several, and has its part of them: see docs/processes.md."""
    whole = settings_of(
        rest={"max_connections": 100, "max_bytes_in_flight": 1 << 30},
        memory={"max_process_bytes": 1 << 32, "refuse_above_bytes": 1 << 31},
        sessions={"max_owner_steps": 40},
    )
    for count in (1, 4):
        first = divided_settings(whole, 0, count)
        found = background_settings(first)
        assert found.rest.max_connections == first.rest.max_connections == 100 // count
        assert found.rest.max_bytes_in_flight == first.rest.max_bytes_in_flight
        assert found.memory == first.memory
        assert found.sessions == first.sessions


def test_low_priority_pools_take_turns_if_processes_share_their_threads() -> None:
    settings = settings_of(
        thread_pools=(
            ThreadPoolSettings(name="online", num_threads=1),
            ThreadPoolSettings(name="background", num_threads=1, low_priority=True),
            ThreadPoolSettings(name="rest", num_threads=3, low_priority=True, own_process=False),
            ThreadPoolSettings(name="moved", num_threads=8, low_priority=True),
        ),
        priorities={"normal": {"pool": "online"}, "low": {"pool": "background"}},
    )
    turns = {"background": 1, "moved": 8}  # their steps may run in the background process
    assert low_priority_turns(settings, 1) == turns
    assert low_priority_turns(settings, 2) == turns
    assert low_priority_turns(settings, 4) == {**turns, "rest": 3}


def test_its_grpc_port_has_a_number_and_is_all_that_it_has() -> None:
    settings = settings_of(
        rest={"host": "127.0.0.1"}, grpc={"port": 8500, "background_port": "free"}
    )
    with with_background_port(settings) as numbered:
        port = numbered.grpc.background_port
        assert isinstance(port, int)
        assert port > 0
        found = background_settings(numbered)
        assert (found.grpc.port, found.grpc.background_port) == (0, port)
        assert Settings(**found.model_dump(mode="json")) == found
    with with_background_port(settings_of()) as without:
        assert without == settings_of()


@pytest.mark.parametrize(
    "changed",
    [
        {"rest": {"port": 0}},
        {"tls": {"certificate_file": "a", "key_file": "b"}},
        {"placement": "ray"},
        {"priorities": {"normal": "online"}},
    ],
)
def test_a_port_requires_a_background_process(changed: dict[str, Any]) -> None:
    settings = settings_of(grpc={"background_port": 8510}, **changed)
    expected = "grpc.background_port requires a background process"
    with pytest.raises(InvalidArgumentError, match=expected), with_background_port(settings):
        pass
