"""The cache of compiled steps: lookup in any order of names, counts, and its capacity."""

from __future__ import annotations

import concurrent.futures
import sys
import threading
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import protos as pb
from runtime.api import DirectSession, InvalidArgumentError
from runtime.executors.step import Executor
from runtime.sessions.direct.executor_cache import ExecutorCache
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
    session._graph.cache = ExecutorCache(capacity=2)
    for fetch in ("m", "n", "m", "a"):
        session.run({"x": X}, [fetch])
    misses = session.executor_cache.misses
    session.run({"x": X}, ["m"])
    assert (session.executor_cache.misses, len(session.executor_cache)) == (misses, 2)


def test_a_compilation_holds_up_only_those_who_want_the_same_step() -> None:
    session = direct_session(g1())
    graph, cache = session._graph.current("Run"), session.executor_cache
    begun, go_on = threading.Event(), threading.Event()
    compiled: list[Sequence[str]] = []

    def compile_slowly(
        feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
    ) -> Executor:
        begun.set()
        assert go_on.wait(30)
        return compile_at_once(feeds, fetches, targets)

    def compile_at_once(
        feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
    ) -> Executor:
        compiled.append(fetches)
        return session._graph.compiler.compile(graph, feeds, fetches, targets)

    slow, quick = (("x",), ("m",), ()), (("x",), ("a",), ())
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        first = threads.submit(cache.find_or_compile, graph, slow, compile_slowly)
        assert begun.wait(30)
        again = threads.submit(cache.find_or_compile, graph, slow, compile_at_once)
        cache.find_or_compile(graph, quick, compile_at_once)
        assert not again.done()
        go_on.set()
        assert again.result(30).executor is first.result(30).executor
    assert compiled == [("a:0",), ("m:0",)]


def test_who_waited_for_a_compilation_that_failed_compiles_alone() -> None:
    session = direct_session(g1())
    graph, cache = session._graph.current("Run"), session.executor_cache
    begun, go_on = threading.Event(), threading.Event()

    def fail(*_: Sequence[str]) -> Executor:
        begun.set()
        assert go_on.wait(30)
        raise InvalidArgumentError("no")

    key = (("x",), ("m",), ())
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        first = threads.submit(cache.find_or_compile, graph, key, fail)
        assert begun.wait(30)
        again = threads.submit(
            cache.find_or_compile,
            graph,
            key,
            lambda *wanted: session._graph.compiler.compile(graph, *wanted),
        )
        go_on.set()
        with pytest.raises(InvalidArgumentError, match="no"):
            first.result(30)
        assert again.result(30).executor is not None


def test_a_step_that_is_found_as_spelled_is_used_under_its_other_spellings_too() -> None:
    session = direct_session(g1())
    session._graph.cache = ExecutorCache(capacity=2)
    for fetch in ("m", "n", "m", "a"):  # n is the least recently used one: it is removed
        session.run({"x": X}, [fetch])
    misses = session.executor_cache.misses
    assert session.run({"x:0": X}, ["m:0"]) == [6]
    assert session.executor_cache.misses == misses


@given(st.lists(st.sampled_from(("m", "n", "a", "m:0", "n:0", "a:0")), max_size=20))
def test_each_use_under_any_spelling_makes_a_step_the_newest(names: list[str]) -> None:
    session = direct_session(g1())
    session._graph.cache = ExecutorCache(capacity=2)
    newest_last: list[str] = []
    for name in names:
        session.run({"x": X}, [name])
        key = name.removesuffix(":0") + ":0"
        newest_last = [*(each for each in newest_last if each != key), key][-2:]
        kept = [fetches for _, fetches, _ in session.executor_cache.executors]
        assert kept == [(each,) for each in newest_last]


def test_finding_needs_no_lock_and_races_with_what_inserts_and_drops() -> None:
    """A thread that holds the lock delays no step that is already compiled."""
    session = direct_session(g1())
    graph = session._graph.current("Run")
    cache = session._graph.cache = ExecutorCache(capacity=3)
    keys = [(("x",), (fetch,), ()) for fetch in ("m", "n", "a", "m:0", "n:0", "a:0")]
    executors = {
        fetch: session._graph.compiler.compile(graph, ["x:0"], [f"{fetch}:0"], ())
        for fetch in "mna"
    }

    def insert() -> None:
        for round_ in range(300):
            key = keys[round_ % len(keys)]
            cache.find_or_compile(graph, key, lambda *wanted: executors[wanted[1][0][0]])

    def find() -> None:
        for round_ in range(3000):
            key = keys[round_ % len(keys)]
            found = cache.find(key)
            assert found is None or found.executor is executors[key[1][0][0]]

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads meet between any two steps of the interpreter
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(work) for work in (insert, find, insert, find)]:
                done.result(60)
    finally:
        sys.setswitchinterval(usual)
    assert len(cache) <= 3
    key = keys[0]
    cache.find_or_compile(graph, key, lambda *_: executors["m"])
    with cache._lock, concurrent.futures.ThreadPoolExecutor(1) as threads:
        found = threads.submit(cache.find, key).result(30)
    assert found is not None
