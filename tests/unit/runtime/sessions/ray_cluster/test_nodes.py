"""Which node a session goes to."""

from __future__ import annotations

import pytest

from runtime.api import FailedPreconditionError, NotFoundError, UnavailableError
from runtime.sessions.ray_cluster.nodes import Node, choose_node, feasible_nodes
from runtime.sessions.ray_cluster.ray_target import Placement


def node(name: str, cpus: float, labels: dict[str, str] | None = None, **more: float) -> Node:
    resources = {"CPU": cpus, "memory": 4 * 2**30, f"node:{name}": 1, **more}
    return Node(name * 4, f"10.0.0.{ord(name) - 96}", name, resources, labels or {})


HEAD, A, B = node("h", 0), node("a", 2, {"zone": "x"}), node("b", 4, {"zone": "y"}, tpu=1)
NODES = [HEAD, A, B]


def test_the_fewest_sessions_for_each_cpu_decide_then_the_own_node() -> None:
    assert choose_node(Placement(), NODES, {}, own=A.id) is A
    assert choose_node(Placement(), NODES, {}, own=B.id) is B
    assert choose_node(Placement(), NODES, {}) is A
    assert choose_node(Placement(), NODES, {A.id: 1, B.id: 1}, own=A.id) is B
    assert choose_node(Placement(), NODES, {A.id: 1, B.id: 2}, own=A.id) is A


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (Placement(num_cpus=3), [B]),
        (Placement(num_cpus=1), [A, B]),
        (Placement(memory=4 * 2**30), [A, B]),
        (Placement(resources={"tpu": 1}), [B]),
        (Placement(labels={"zone": "x"}), [A]),
        (Placement(node=HEAD.id), [HEAD]),  # without CPUs: only if asked for
        (Placement(node="10.0.0.2"), [B]),
        (Placement(node="a"), [A]),
    ],
)
def test_nodes_that_have_what_is_asked_for(placement: Placement, expected: list[Node]) -> None:
    assert feasible_nodes(placement, NODES) == expected


@pytest.mark.parametrize(
    ("placement", "text"),
    [
        (
            Placement(num_cpus=64),
            "Ray cluster has 64 CPU; the nodes have 10.0.0.8: ",
        ),
        (Placement(memory=2**40), "has 1024.0 GiB of memory; .* 2 CPU, 4.0 GiB of memory, zone=x"),
        (Placement(num_cpus=4, labels={"zone": "x"}), "has 4 CPU and label zone=x"),
        (Placement(num_cpus=4, node="10.0.0.1"), "has 4 CPU and the address 10.0.0.1"),
    ],
)
def test_what_no_node_has(placement: Placement, text: str) -> None:
    with pytest.raises(FailedPreconditionError, match=text):
        feasible_nodes(placement, NODES)


def test_a_node_that_is_not_there() -> None:
    with pytest.raises(NotFoundError, match=r"has no node '10.9.9.9'; its nodes are 10.0.0.1 \("):
        feasible_nodes(Placement(node="10.9.9.9"), NODES)


def test_a_cluster_without_nodes() -> None:
    with pytest.raises(UnavailableError, match="No node of the Ray cluster is alive"):
        feasible_nodes(Placement(), [])


def test_only_some_of_many_nodes_are_listed() -> None:
    with pytest.raises(FailedPreconditionError, match=r"and 12 more$"):
        feasible_nodes(Placement(num_cpus=64), [A] * 20)
