"""The parts of the settings are together the whole."""

from __future__ import annotations

import pytest

from runtime.api import schedulable_cores
from runtime.errors import InvalidArgumentError
from server.settings import Settings, ThreadPoolSettings
from server.supervision.divided_settings import (
    divided_settings,
    process_count,
)


def settings_of(**values: object) -> Settings:
    return Settings(**values)  # type: ignore[arg-type] # some of them


def test_pools_and_memory_are_divided() -> None:
    settings = settings_of(
        thread_pools=(
            ThreadPoolSettings(name="online", num_threads=7, queue_size=10),
            ThreadPoolSettings(name="background", num_threads=1, low_priority=True),
        ),
        rest={"max_bytes_in_flight": 1000, "max_connections": 10},
        memory={"max_process_bytes": 1001},
    )
    parts = [divided_settings(settings, slot, 3) for slot in range(3)]
    assert [part.thread_pools[0].num_threads for part in parts] == [3, 2, 2]
    assert [part.thread_pools[0].queue_size for part in parts] == [4, 3, 3]
    assert [part.thread_pools[1].num_threads for part in parts] == [1, 1, 1]
    assert sum(part.rest.max_bytes_in_flight or 0 for part in parts) == 1000
    assert sum(part.memory.max_process_bytes or 0 for part in parts) == 1001
    assert [part.rest.max_connections for part in parts] == [4, 4, 4]
    assert {part.memory.refuse_above_bytes for part in parts} == {None}
    assert {part.sessions.max_open for part in parts} == {settings.sessions.max_open}
    whole = settings.sessions.max_owner_steps
    assert sum(part.sessions.max_owner_steps for part in parts) == whole


def test_a_pool_of_all_cores_is_divided_too() -> None:
    parts = [divided_settings(Settings(), slot, 2) for slot in range(2)]
    threads = [part.thread_pools[0].num_threads for part in parts]
    assert sum(threads) == max(2, schedulable_cores())


def test_the_settings_of_a_process_pass_as_json() -> None:
    part = divided_settings(Settings(), 0, 2)
    assert Settings(**part.model_dump(mode="json")) == part


@pytest.mark.parametrize("wanted", [1, 3, "auto"])
def test_the_number_of_processes(wanted: int | str) -> None:
    count = process_count(settings_of(processes=wanted))
    assert count == (min(schedulable_cores(), 64) if wanted == "auto" else wanted)


def test_what_requires_one_process() -> None:
    assert process_count(settings_of(grpc={"socket_path": "/tmp/s"})) == 1
    with pytest.raises(InvalidArgumentError, match=r"processes is 2, and grpc.socket_path requi"):
        process_count(settings_of(processes=2, grpc={"socket_path": "/tmp/s"}))
