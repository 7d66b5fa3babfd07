"""Containers of resources, and what a session removes from a shared manager."""

from __future__ import annotations

import numpy as np

import protos as pb
from runtime.api import SessionOptions, new_session, reset
from runtime.framework.resource_manager import ResourceManager
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import FLOAT, X, direct_session


def in_containers(*containers: str) -> pb.GraphDef:
    """Variables of the name "n", one in each container, with nodes `assign<i>` and `read<i>`."""
    graph = Graph()
    value = graph.placeholder("float32", "value")
    for index, container in enumerate(containers):
        handle = graph.add(
            "VarHandleOp",
            name=f"handle{index}",
            dtype=FLOAT,
            shape=(),
            container=container,
            shared_name="n",
        )[0]
        graph.add("AssignVariableOp", handle, value, name=f"assign{index}", dtype=FLOAT)
        graph.add("ReadVariableOp", handle, name=f"read{index}", dtype=FLOAT)
    return graph.graph_def


def test_a_container_scopes_the_names_in_it() -> None:
    session = direct_session(in_containers("A", "B", "A", "", "localhost"))
    for index, value in ((0, 1), (1, 2), (3, 3)):
        session.run({"value": np.float32(value)}, [], [f"assign{index}"])
    assert session.run({}, ["read0", "read1", "read2", "read4"]) == [1, 2, 1, 3]


def test_reset_forgets_the_named_containers() -> None:
    session = direct_session(in_containers("A", "B"))
    session.run({"value": X}, [], ["assign0", "assign1"])
    reset("", ["A"])
    assert [container for container, _, _ in session.resources] == ["B"]
    reset("")


def test_a_queue_without_a_shared_name_ends_with_its_session_in_a_shared_manager() -> None:
    shared = ResourceManager()
    private, named = Graph(), Graph()
    for graph, name in ((private, ""), (named, "known")):
        queue = graph.add(
            "FIFOQueueV2", name="queue", component_types=[FLOAT], shapes=[()], shared_name=name
        )[0]
        graph.add("QueueEnqueueV2", queue, [np.float32(1)], name="enqueue")
        graph.add("QueueSizeV2", queue, name="size")
    for graph in (private, named):
        session = new_session(SessionOptions(resources=shared))
        session.create(graph.graph_def)
        session.run({}, (), ["enqueue"])
        assert session.run({}, ["size"])[0] == 1
        assert len(list(shared)) == 1
        session.destroy()
    assert [(container, name) for container, name, _ in shared] == [("localhost", "known")]
