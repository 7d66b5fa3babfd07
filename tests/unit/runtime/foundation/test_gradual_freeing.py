"""What has many objects gives them up one by one, and only its own."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np

import protos as pb
from runtime.api import DirectSession
from runtime.foundation.gradual_freeing import free_gradually
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import direct_session, in_caller

NODES = 300


class _Object:
    """Something that can be referred to weakly."""


def test_another_thread_runs_while_objects_are_freed() -> None:
    freed: list[int] = []
    resumed, waiting = threading.Event(), threading.Event()

    class Waits:
        def __del__(self) -> None:
            freed.append(threading.get_ident())
            waiting.set()
            assert resumed.wait(60)

    thread = threading.Thread(target=free_gradually, args=([_Object(), Waits(), _Object()],))
    thread.start()
    assert waiting.wait(60)
    resumed.set()
    thread.join(60)
    assert freed == [thread.ident]


def test_what_others_hold_stays() -> None:
    kept = _Object()
    given_up = weakref.ref(other := _Object())
    objects: list[object] = [kept, other]
    del other
    free_gradually(objects)
    assert not objects
    assert given_up() is None


def _chain() -> pb.GraphDef:
    graph = Graph()
    value = graph.placeholder("float32", "x")
    for number in range(NODES):
        value = graph.add(("Neg", "Abs", "Sign")[number % 3], value, name=f"n{number}")[0]
    return graph.graph_def


def _run(session: DirectSession) -> np.ndarray:
    return session.run({"x": np.float32(3)}, [f"n{NODES - 1}"], (), in_caller())[0]


def test_an_extended_graph_keeps_the_nodes_of_the_one_before() -> None:
    session = direct_session(_chain())
    before = _run(session)
    more = Graph()
    more.placeholder("float32", "another")
    session.extend(more.graph_def)
    assert len(session.graph_def().node) == NODES + 2
    assert _run(session) == before


def test_the_nodes_of_a_session_are_freed_without_the_collector() -> None:
    session = direct_session(_chain())
    for _ in range(3):  # as interpreted and as generated code
        _run(session)
    graph = session._graph.current("Run")
    executors = [weakref.ref(each) for each in session.executor_cache.executors.values()]
    gc.disable()
    try:
        session.destroy()
        del session
        assert all(each() is None for each in executors)
        assert len(graph.nodes) == NODES + 1  # held by this test
    finally:
        gc.enable()
