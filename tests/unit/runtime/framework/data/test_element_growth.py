"""Iterators that keep elements are counted, and refused what exceeds the limit of the session."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from runtime.api import DirectSession, ResourceExhaustedError, SessionOptions, new_session
from runtime.framework.data.element_growth import ElementGrowth
from runtime.framework.growth_limit import GrowthLimit
from tests.conformance.cases.data.datasets import DatasetGraph, Output

MEGABYTE = 1 << 20
ENDLESS = 1 << 40
SECONDS = 30  # the longest time that a test waits


def opened(g: DatasetGraph, max_bytes: int | None = 4 * MEGABYTE) -> DirectSession:
    session = new_session(SessionOptions(max_session_bytes=max_bytes))
    assert isinstance(session, DirectSession)
    session.create(g.graph_def)
    return session


def iterated(
    g: DatasetGraph, dataset: Output, max_bytes: int | None = 4 * MEGABYTE
) -> DirectSession:
    attrs = {"output_types": g.types, "output_shapes": g.shapes}
    iterator = g.add("IteratorV2", shared_name="it", container="", **attrs)[0]
    g.add("MakeIterator", dataset, iterator, name="start")
    g.add("IteratorGetNext", iterator, name="next", **attrs)
    session = opened(g, max_bytes)
    session.run({}, (), ("start",))
    return session


def shuffled(g: DatasetGraph, size: int) -> Any:
    seeds = [g.long(1), g.long(2)]
    return g.data("ShuffleDataset", g.range(ENDLESS), g.long(size), *seeds)


def cached(g: DatasetGraph) -> Any:
    return g.data("CacheDataset", g.range(ENDLESS), np.array(b"", object))


def batched(g: DatasetGraph) -> Any:
    return g.data("BatchDatasetV2", g.range(ENDLESS), g.long(ENDLESS), np.bool_(False))


def windowed(g: DatasetGraph) -> Any:
    size, step, is_exact = g.long(ENDLESS), g.long(1), np.bool_(False)
    return g.data("WindowDataset", g.range(ENDLESS), size, step, step, is_exact)


def rebatched(g: DatasetGraph) -> Any:
    batches = g.data("BatchDatasetV2", g.range(ENDLESS), g.long(100), np.bool_(False))
    return g.data("RebatchDatasetV2", batches, np.array([ENDLESS]), np.bool_(False))


def unique(g: DatasetGraph) -> Any:
    distinct = g.data("UniqueDataset", g.range(ENDLESS))
    return g.data("SkipDataset", distinct, g.long(ENDLESS))


ENDLESSLY = pytest.mark.parametrize(
    "build",
    [lambda g: shuffled(g, ENDLESS), batched, windowed, rebatched, unique],
    ids=["shuffle", "batch", "window", "rebatch", "unique"],
)


@ENDLESSLY
def test_one_call_that_keeps_elements_without_end_is_refused(build: Any) -> None:
    g = DatasetGraph()
    session = iterated(g, build(g))
    before = session.bytes_held
    with pytest.raises(ResourceExhaustedError, match=r"max_session_bytes is 4194304"):
        session.run({}, ["next:0"])
    assert before + MEGABYTE < session.bytes_held < 6 * MEGABYTE
    session.run({}, (), ("start",))  # a new pass has an empty buffer
    assert session.bytes_held < before + MEGABYTE


@ENDLESSLY
def test_a_dataset_that_one_kernel_reads_is_refused_too(build: Any) -> None:
    g = DatasetGraph()
    attrs = {"output_types": g.types, "output_shapes": g.shapes}
    g.add("DatasetToSingleElement", build(g), name="single", **attrs)
    session = opened(g)
    with pytest.raises(ResourceExhaustedError, match=r"max_session_bytes is 4194304"):
        session.run({}, ["single:0"])
    assert session.bytes_held < MEGABYTE


def test_many_calls_that_keep_elements_are_refused() -> None:
    g = DatasetGraph()
    session = iterated(g, cached(g))
    with pytest.raises(ResourceExhaustedError, match=r"max_session_bytes is 4194304"):
        for _ in range(100_000):
            session.run({}, ["next:0"])
    assert 3 * MEGABYTE < session.bytes_held < 6 * MEGABYTE


def test_elements_that_are_not_kept_are_not_refused() -> None:
    g = DatasetGraph()
    skipped = g.data("SkipDataset", g.range(ENDLESS), g.long(100_000))
    session = iterated(g, skipped)
    assert session.run({}, ["next:0"]) == [100_000]
    assert session.bytes_held < MEGABYTE


def test_a_buffer_within_the_limit_is_counted_as_it_is() -> None:
    g = DatasetGraph()
    session = iterated(g, shuffled(g, 1000), max_bytes=None)
    before = session.bytes_held
    session.run({}, ["next:0"])
    once = session.bytes_held
    assert 100_000 < once - before < 400_000  # with the compiled step
    for _ in range(10):
        session.run({}, ["next:0"])
    assert session.bytes_held == pytest.approx(once, abs=5000)


def test_the_number_is_of_the_last_count_while_an_element_is_produced() -> None:
    lock = threading.RLock()
    growth = ElementGrowth(lock)
    kept: list[np.ndarray] = []
    growth.start(kept)
    few = growth.held()[0]
    kept.append(np.zeros(1000))
    growth.note_call()
    is_held, may_go = threading.Event(), threading.Event()

    def produce() -> None:
        with lock:
            is_held.set()
            assert may_go.wait(SECONDS)

    thread = threading.Thread(target=produce)
    thread.start()
    assert is_held.wait(SECONDS)
    assert growth.held()[0] == few
    may_go.set()
    thread.join(SECONDS)
    assert growth.held()[0] > 8000


def test_counting_takes_a_small_share_of_producing() -> None:
    counts = 0

    class Root:
        def held(self) -> tuple[int, tuple[object, ...]]:
            nonlocal counts
            counts += 1
            return kept, ()

    kept = 0
    growth = ElementGrowth()
    growth.limit(GrowthLimit(lambda: 0, 1 << 40), is_managed=False)
    growth.start(Root())
    assert growth.is_limited
    element = (np.zeros(12_500),)  # 100 kB
    for _ in range(10_000):  # 1 GB
        kept += 100_000
        growth.note(element)
    assert 10 < counts < 25  # after each doubling
