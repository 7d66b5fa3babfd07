"""What is loaded is not walked by the collector; what was unloaded is collected all the same."""

from __future__ import annotations

import asyncio
import gc
import os
import pathlib
import platform
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator

import pytest

from runtime.api import long_lived_objects
from server.lifecycle import Lifecycle
from server.models import freed_memory
from server.models.freed_memory import (
    LOOKS_AT_GROWTH,
    MOST_GROWTH_BYTES,
    MOST_KEPT,
    MOST_LEFT_NODES,
    MOST_UNCOLLECTED,
    YOUNG_OBJECTS,
    collect_less_often,
    cycles_were_left,
    has_uncollected,
    keep_from_collector,
    model_was_closed,
    return_freed_memory,
    trim_when_idle,
)

ROOT = pathlib.Path(__file__).parents[4]
# Prints the number of mappings of the heap that are for huge pages, with an array and without.
_FREE_AN_ARRAY = """
import numpy as np
from runtime.api import keep_freed_memory
from server.models.freed_memory import trim_heap

def for_huge_pages():
    is_heap, count = False, 0
    for line in open("/proc/self/smaps"):
        if "-" in line.split()[0]:
            is_heap = line.endswith("[heap]\\n")
        elif line.startswith("VmFlags:"):
            count += is_heap and "hg" in line.split()
    return count

keep_freed_memory()
array = np.ones(8 << 20, np.uint8)
above = np.ones(1 << 20, np.uint8)
print(for_huge_pages())
del array
trim_heap()
print(for_huge_pages())
"""


class Knot:
    """An object that only the collector can free."""

    is_there = True

    def __init__(self) -> None:
        self.self = self


@pytest.fixture(autouse=True)
def usual_collector() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.freeze()  # as before: pytest's own objects are a million, which take seconds to visit
    gc.set_threshold(*threshold)


def test_an_unloaded_model_is_freed_though_it_was_kept_from_the_collector() -> None:
    knot = Knot()
    seen = weakref.ref(knot)
    keep_from_collector()
    del knot
    gc.collect()
    assert seen() is not None
    return_freed_memory()
    assert seen() is None


def test_names_of_attributes_that_native_code_asked_for_are_freed() -> None:
    name = "".join(["is_", "there"])  # no constant, as what PyObject_GetAttrString makes
    references = sys.getrefcount(name)
    assert getattr(Knot(), name)
    return_freed_memory()
    assert sys.getrefcount(name) == references


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_the_heap_is_not_for_huge_pages_once_an_array_in_it_was_freed() -> None:
    # numpy asks for huge pages by default; the system may have none.
    environment = {key: value for key, value in os.environ.items() if "HUGEPAGE" not in key}
    done = subprocess.run(
        [sys.executable, "-c", _FREE_AN_ARRAY],
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    with_array, trimmed = map(int, done.stdout.split())
    if not with_array:
        pytest.skip("the system has no huge pages")
    assert trimmed == 0


def test_cycles_of_unloaded_models_wait_for_an_idle_time_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(freed_memory, "_uncollected", 0)
    knot = Knot()
    seen = weakref.ref(knot)
    keep_from_collector()
    del knot
    for _ in range(MOST_UNCOLLECTED - 1):
        model_was_closed()
    assert seen() is not None and has_uncollected()
    model_was_closed()
    assert seen() is None and not has_uncollected()


def test_an_idle_server_collects_what_was_unloaded_though_no_request_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(freed_memory, "_uncollected", 0)
    collected: list[bool] = []

    def tidy() -> None:
        collected.append(has_uncollected())
        return_freed_memory()

    async def sleep(_: float) -> None:
        if len(collected) == 2:
            raise asyncio.CancelledError
        model_was_closed()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(trim_when_idle(Lifecycle(), sleep, tidy))
    assert collected == [True, True]


def test_what_was_unloaded_is_returned_at_a_shorter_pause_than_what_requests_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert looks_until_trimmed(monkeypatch, uncollected=0) == 40
    assert looks_until_trimmed(monkeypatch, uncollected=1) == 2


def looks_until_trimmed(monkeypatch: pytest.MonkeyPatch, uncollected: int) -> int:
    """Looks at an idle server that a request has ended in."""
    monkeypatch.setattr(freed_memory, "_uncollected", uncollected)
    lifecycle, looks, at = Lifecycle(), 0, list[int]()

    async def sleep(_: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            lifecycle.begin_request()
            lifecycle.end_request()
        if at:
            raise asyncio.CancelledError

    async def run() -> None:
        await trim_when_idle(lifecycle, sleep, lambda: at.append(looks))

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    return at[0] - 1  # the first was no pause


@pytest.mark.parametrize("uncollected", [0, 1])
def test_a_server_that_answers_requests_at_once_is_not_idle(
    monkeypatch: pytest.MonkeyPatch, uncollected: int
) -> None:
    monkeypatch.setattr(freed_memory, "_uncollected", uncollected)
    lifecycle, trims = Lifecycle(), list[int]()
    busy_looks = 100

    async def sleep(_: float) -> None:
        if trims:
            raise asyncio.CancelledError
        if lifecycle.ended < busy_looks:
            lifecycle.note_answered()

    async def run() -> None:
        await trim_when_idle(
            lifecycle, sleep, lambda: trims.append(lifecycle.ended), resident=lambda: None
        )

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert trims == [busy_looks]


def test_what_exists_after_a_load_is_not_walked() -> None:
    keep_from_collector()
    assert gc.get_freeze_count() > 1000


def test_cycles_of_closed_sessions_count_as_a_model_when_they_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(freed_memory, "_uncollected", 0)
    monkeypatch.setattr(freed_memory, "_left_nodes", 0)
    knot = Knot()
    seen = weakref.ref(knot)
    keep_from_collector()
    del knot
    cycles_were_left(MOST_LEFT_NODES - 1)
    assert not has_uncollected()
    cycles_were_left(1)
    assert has_uncollected()
    assert seen() is not None  # until the server is idle
    for _ in range(MOST_UNCOLLECTED - 1):
        cycles_were_left(MOST_LEFT_NODES)
    assert seen() is None
    assert not has_uncollected()


def test_only_young_collections_become_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_lived_objects, "_is_used", False)
    _, *older = gc.get_threshold()
    collect_less_often()
    assert gc.get_threshold() == (YOUNG_OBJECTS, *older)
    with long_lived_objects():  # and graphs are kept from the collector
        assert not gc.isenabled()


@pytest.mark.parametrize("times", [MOST_KEPT - 1, MOST_KEPT])
def test_what_was_garbage_when_graphs_were_kept_is_collected_at_last(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setattr(freed_memory, "_uncollected", 0)
    monkeypatch.setattr(freed_memory, "_kept_before", long_lived_objects.times_kept - times)
    knot = Knot()
    seen = weakref.ref(knot)
    keep_from_collector()
    del knot
    for _ in range(2):
        freed_memory._tidy()
        assert (seen() is None) == (times == MOST_KEPT)


def test_the_heap_is_trimmed_once_after_each_time_of_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(freed_memory, "LOOK_SECONDS", freed_memory.IDLE_SECONDS)
    monkeypatch.setattr(freed_memory, "_uncollected", 0)
    lifecycle, trims = Lifecycle(), list[None]()

    def request(*, ends: bool = True) -> None:
        lifecycle.begin_request()
        if ends:
            lifecycle.end_request()

    # What happens while the task sleeps; the last request goes on.
    during: list[Callable[[], None]] = [
        lambda: None,
        request,
        lambda: None,
        lambda: None,
        lambda: request(ends=False),
    ]
    seen: list[int] = []

    async def sleep(_: float) -> None:
        seen.append(len(trims))
        if len(seen) > len(during):
            raise asyncio.CancelledError
        during[len(seen) - 1]()

    async def run() -> None:
        await trim_when_idle(lifecycle, sleep, lambda: trims.append(None))

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert seen == [0, 0, 0, 1, 1, 1]


def test_the_heap_is_trimmed_under_traffic_when_it_has_grown_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(freed_memory, "_uncollected", 0)
    lifecycle, trims = Lifecycle(), list[int]()
    # Resident memory at the beginning, at each look at its growth, and after each trim.
    sizes = iter([50, 10, 10 + MOST_GROWTH_BYTES, 11 + MOST_GROWTH_BYTES, 20, 21, 20])
    looks = 0

    async def sleep(_: float) -> None:
        nonlocal looks
        looks += 1
        if looks > 5 * LOOKS_AT_GROWTH:
            raise asyncio.CancelledError
        lifecycle.begin_request()  # the server is never idle
        lifecycle.end_request()

    async def run() -> None:
        await trim_when_idle(lifecycle, sleep, lambda: trims.append(looks), lambda: next(sizes))

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert trims == [3 * LOOKS_AT_GROWTH]
