"""What lives long is excluded from collections, in programs that want it; nothing else changes."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import protos as pb
from runtime.api import DirectSession, RunRequest, SessionOptions, new_session
from runtime.api import long_lived_objects as of_this_process
from runtime.foundation import long_lived_objects as module
from runtime.foundation.long_lived_objects import KEPT_AT, CollectorPause, LongLivedObjects
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import loop_graph

NODES = 2_000  # with which a session makes more than KEPT_AT objects


@pytest.fixture(autouse=True)
def usual_collector() -> Iterator[None]:
    yield
    gc.enable()
    gc.freeze()  # as before: pytest's own objects are a million, which take seconds to visit


@pytest.fixture
def kept() -> LongLivedObjects:
    objects = LongLivedObjects(CollectorPause())
    objects.keep()
    return objects


def test_many_new_objects_are_excluded(kept: LongLivedObjects) -> None:
    gc.unfreeze()
    with kept():
        assert not gc.isenabled()
        made = [[] for _ in range(KEPT_AT + 1_000)]
    assert gc.isenabled()
    assert kept.times_kept == 1
    assert gc.get_freeze_count() > len(made)


def test_few_new_objects_are_excluded_when_they_have_become_many(kept: LongLivedObjects) -> None:
    made = []
    for _ in range(10):
        assert kept.times_kept == 0
        with kept():
            made.append([[] for _ in range(KEPT_AT // 10 + 100)])
    assert kept.times_kept == 1


def test_a_program_that_does_not_want_it_keeps_its_collector() -> None:
    objects = LongLivedObjects(CollectorPause())
    with objects():
        assert gc.isenabled()
        made = [[] for _ in range(2 * KEPT_AT)]
    assert made
    assert objects.times_kept == 0


def test_what_is_made_in_a_pause_for_other_reasons_is_not_excluded() -> None:
    pause = CollectorPause()
    with pause:
        assert not gc.isenabled()
        made = [[] for _ in range(2 * KEPT_AT)]
    assert made
    assert gc.isenabled()
    assert pause.times_kept == 0


def test_a_collector_that_was_disabled_stays_disabled(kept: LongLivedObjects) -> None:
    gc.disable()
    with kept():
        pass
    assert not gc.isenabled()


def test_the_last_thread_that_leaves_enables_the_collector(kept: LongLivedObjects) -> None:
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with kept():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=stay)
    thread.start()
    assert entered.wait(60)
    with pytest.raises(ZeroDivisionError), kept():
        _ = 1 / 0
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_the_graph_and_the_steps_of_a_large_session_are_excluded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(of_this_process, "_is_used", True)
    monkeypatch.setattr(module.collector_pause, "_made", 0)
    graph_def, fetch = large_graph()
    before = of_this_process.times_kept
    full_collections = gc.get_stats()[2]["collections"]
    run_once(graph_def, fetch)
    assert of_this_process.times_kept > before
    assert gc.get_freeze_count() > KEPT_AT
    assert gc.get_stats()[2]["collections"] == full_collections


def test_a_closed_session_leaves_nothing_for_the_collector() -> None:
    graph_def, fetch = large_graph()
    run_once(graph_def, fetch).close()  # makes what is made once in a process
    gc.collect()
    gc.disable()
    session = run_once(graph_def, fetch)
    assert session.nodes_for_collector == 0
    session.close()
    del session
    assert gc.collect() < NODES / 10


def test_what_a_loop_of_v1_control_flow_leaves_is_said() -> None:
    graph_def = loop_graph()
    session = new_direct_session()
    assert session.nodes_for_collector == 0
    session.create(graph_def)
    assert session.nodes_for_collector == len(graph_def.node)
    gc.collect()
    gc.disable()
    session.destroy()
    del session
    assert gc.collect() > len(graph_def.node)


def test_what_fails_is_not_excluded(kept: LongLivedObjects) -> None:
    with pytest.raises(ZeroDivisionError), kept():
        made = [[] for _ in range(2 * KEPT_AT)]
        _ = 1 / 0
    assert made
    assert kept.times_kept == 0
    assert gc.isenabled()


def large_graph() -> tuple[pb.GraphDef, str]:
    """Return a chain of NODES additions, and the name of its end."""
    graph = Graph()
    value = graph.placeholder("float32", "x")
    for index in range(NODES):
        value = graph.add("AddV2", value, np.float32(1), name=f"n{index}")[0]
    return graph.graph_def, value[0]


def new_direct_session() -> DirectSession:
    session = new_session(SessionOptions())
    assert isinstance(session, DirectSession)
    return session


def run_once(graph_def: pb.GraphDef, fetch: str) -> DirectSession:
    session = new_direct_session()
    session.create(graph_def)
    assert session.run_async(RunRequest({"x": np.float32(0)}, [fetch])).result() == [NODES]
    return session
