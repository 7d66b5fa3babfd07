"""Many sessions of one model: what they share, and what each has for itself."""

from __future__ import annotations

import pathlib

import numpy as np

import protos as pb
from runtime.api import (
    DirectSession,
    RuntimeSession,
    SavedModelBundle,
    SessionOptions,
    load_saved_model,
)
from runtime.framework.dtypes import DataType
from runtime.framework.resources.variable import Variable
from runtime.saved_model.initialization import MAIN_OP_COLLECTION
from tests.conformance.case import Graph
from tests.saved_model_corpus import FIXTURES

SESSIONS = 100
OPTIONS = SessionOptions(config=pb.ConfigProto(inter_op_parallelism_threads=-1))


def load(folder: pathlib.Path) -> SavedModelBundle:
    return load_saved_model(OPTIONS, None, str(folder), {"serve"})


def open_sessions(bundle: SavedModelBundle) -> list[DirectSession]:
    opened = [bundle.open_session(OPTIONS) for _ in range(SESSIONS)]
    assert all(is_shared for _, is_shared in opened)
    return [session for session, _ in opened if isinstance(session, DirectSession)]


def call(bundle: SavedModelBundle, session: RuntimeSession, signature: str) -> float:
    name = bundle.signatures[signature].outputs["output"].name
    return float(session.run({}, [name])[0])


def arrays(session: RuntimeSession) -> dict[str, np.ndarray | None]:
    assert isinstance(session, DirectSession)
    return {
        name: resource.peek()
        for _, name, resource in session.resources
        if isinstance(resource, Variable)
    }


def test_an_assignment_is_seen_in_its_own_session_only() -> None:
    bundle = load(FIXTURES / "counter")
    sessions = open_sessions(bundle)
    for number, session in enumerate(sessions):
        for _ in range(number % 3):
            call(bundle, session, "incr_counter")
    counts = [call(bundle, session, "get_counter") for session in sessions]
    assert counts == [number % 3 for number in range(SESSIONS)]
    assert call(bundle, bundle.session, "get_counter") == 0
    call(bundle, bundle.session, "incr_counter")
    assert [call(bundle, session, "get_counter") for session in sessions] == counts
    newcomer, _ = bundle.open_session(OPTIONS)
    assert call(bundle, newcomer, "get_counter") == 0


def test_weights_are_one_array_until_they_are_assigned() -> None:
    bundle = load(FIXTURES / "counter")
    serving = arrays(bundle.session)
    sessions = open_sessions(bundle)
    assert len(sessions) == SESSIONS and serving
    for session in sessions:
        mine = arrays(session)
        assert mine.keys() == serving.keys()
        assert all(mine[name] is serving[name] for name in serving)
    call(bundle, sessions[0], "incr_counter")
    assert any(arrays(sessions[0])[name] is not serving[name] for name in serving)
    assert all(arrays(sessions[1])[name] is serving[name] for name in serving)
    assert all(arrays(bundle.session)[name] is serving[name] for name in serving)


def test_sessions_share_what_was_compiled() -> None:
    bundle = load(FIXTURES / "counter")
    call(bundle, bundle.session, "get_counter")
    assert isinstance(bundle.session, DirectSession)
    misses = bundle.session.executor_cache.misses
    for session in open_sessions(bundle):
        call(bundle, session, "get_counter")
    assert bundle.session.executor_cache.misses == misses


def drawing_model() -> pb.MetaGraphDef:
    """The init op draws from a seeded generator, whose state no resource holds."""
    graph = Graph()
    draw = graph.add(
        "RandomUniform", np.array([2], np.int32), name="draw", dtype=DataType.FLOAT, seed=7, seed2=8
    )[0]
    graph.add("Identity", draw, name="init")
    meta_graph = pb.MetaGraphDef(graph_def=graph.graph_def)
    meta_graph.meta_info_def.tags.append("serve")
    meta_graph.collection_def[MAIN_OP_COLLECTION].node_list.value.append("init")
    return meta_graph


def test_a_generator_that_has_drawn_is_not_shared(tmp_path: pathlib.Path) -> None:
    model = pb.SavedModel(saved_model_schema_version=1, meta_graphs=[drawing_model()])
    (tmp_path / "saved_model.pb").write_bytes(model.SerializeToString())
    bundle = load(tmp_path)
    expected = bundle.session.run({}, ["draw"])[0].tolist()  # the second draw, after the init op's
    assert bundle.session.run({}, ["draw"])[0].tolist() != expected
    opened, is_shared = bundle.open_session(OPTIONS)
    assert not is_shared
    assert opened.run({}, ["draw"])[0].tolist() == expected
