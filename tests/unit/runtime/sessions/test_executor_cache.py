"""Compiled steps are kept: found again in any order, counted, and bounded."""

from __future__ import annotations

import time

import protos as pb
from runtime.api import DirectSession
from runtime.sessions.executor_cache import ExecutorCache
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import X, direct_session, g1, in_caller

CHAIN = 500  # nodes


def figures(session: DirectSession) -> tuple[int, int, int]:
    cache = session.executor_cache
    return cache.hits, cache.misses, len(cache)


def test_the_same_set_in_another_order_is_a_hit() -> None:
    session = direct_session(g1())
    assert session.run({"x": X}, ["m", "n", "a"]) == [6, -6, 2]
    assert figures(session) == (0, 1, 1)
    assert session.run({"x": X}, ["m", "n", "a"]) == [6, -6, 2]
    assert session.run({"x:0": X}, ["a:0", "n", "m"]) == [2, -6, 6]
    assert figures(session) == (2, 1, 1)
    assert session.run({"x": X}, ["m"]) == [6]
    assert figures(session) == (2, 2, 2)


def chain() -> pb.GraphDef:
    graph = Graph()
    value = graph.placeholder("float32", "x")
    for index in range(CHAIN):
        value = graph.add("Neg" if index % 2 else "Tanh", value, name=f"n{index}")[0]
    return graph.graph_def


def seconds(session: DirectSession, fetch: str) -> float:
    started = time.perf_counter()
    session.run({"x": X}, [fetch], (), in_caller())
    return time.perf_counter() - started


def test_the_second_run_costs_a_fraction_of_the_first() -> None:
    session = direct_session(chain())
    last = f"n{CHAIN - 1}"
    first = seconds(session, last)
    later = min(seconds(session, last) for _ in range(20))
    assert first / later >= 20


def test_the_least_recently_used_step_goes_first() -> None:
    session = direct_session(g1())
    session._cache = ExecutorCache(capacity=2)
    for fetch in ("m", "n", "m", "a"):
        session.run({"x": X}, [fetch])
    misses = session.executor_cache.misses
    session.run({"x": X}, ["m"])
    assert (session.executor_cache.misses, len(session.executor_cache)) == (misses, 2)
