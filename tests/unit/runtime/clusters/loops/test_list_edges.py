"""Lists stay inside of clusters: their makers wait for the loop, or nothing of it is clustered."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

import protos as pb
import runtime.client as tf
from runtime.clusters.emit_cluster import ClusterGraph
from runtime.clusters.emitters import all_emitters
from runtime.clusters.partition import partition
from tests.unit.runtime.clusters.loops.recurrent_graphs import (
    UNITS,
    Options,
    X,
    graph_of,
    inputs,
    lstm,
)
from tests.unit.runtime.clusters.loops.recurrent_layers import optimised

LISTS = ["TensorListFromTensor", "TensorListReserve", "TensorListStack"]


def clusters_of(
    graph: pb.GraphDef, fetches: list[str], unsupported: Collection[str] = ()
) -> list[ClusterGraph]:
    """The clusters of a graph, whose table of emitters lacks some ops."""
    step, library = optimised(graph, {X: inputs()}, dict.fromkeys(fetches))
    table = {op: row for op, row in all_emitters(library).items() if op not in unsupported}
    return partition(step, table)


def list_ops(cluster: ClusterGraph) -> list[str]:
    """The ops of a cluster that make or take lists, sorted."""
    uses = ("TensorList", "While", "StatelessWhile")
    return sorted(node.op for node in cluster.nodes if node.op.startswith(uses))


def test_a_loop_and_its_lists_are_one_cluster() -> None:
    (cluster,) = clusters_of(*graph_of(lstm))
    assert list_ops(cluster) == ["StatelessWhile", *LISTS]


def from_exponential(batch: Any, index: int) -> Any:
    """An initial state that needs an op between supported ones."""
    return tf.exp(tf.tanh(tf.ones(tf.stack([batch, UNITS])) * 0.5) - 0.25) * 0.1


def test_makers_of_lists_wait_for_the_loop() -> None:
    """The input list could be made before the op that is not supported, the loop only after it."""
    graph, fetches = graph_of(lstm, Options(initial=from_exponential))
    clusters = clusters_of(graph, fetches, ["Exp"])
    assert [list_ops(each) for each in clusters] == [[], ["StatelessWhile", *LISTS]]


def test_without_a_list_operation_the_loop_is_not_clustered() -> None:
    for op in LISTS:
        clusters = clusters_of(*graph_of(lstm), [op])
        assert [list_ops(each) for each in clusters if list_ops(each)] == []


def test_a_list_that_two_loops_write_leaves_nothing_open() -> None:
    """A refused loop takes the lists with it that another loop reads."""
    graph, fetches = graph_of(lstm)
    step, library = optimised(graph, {X: inputs()}, dict.fromkeys(fetches))
    (loop,) = (node for node in step.nodes if node.op == "StatelessWhile")
    clusters = partition(step, all_emitters(library), refused=[loop])
    assert [list_ops(each) for each in clusters if list_ops(each)] == []


def test_a_list_without_a_loop() -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        made = tf.ops.TensorListFromTensor(x, np.int32([3]), element_dtype=tf.float32)
        y = tf.ops.TensorListStack(made, np.int32([3]), element_dtype=tf.float32, name="y")
    (cluster,) = clusters_of(graph.as_graph_def(), [y.name])
    assert list_ops(cluster) == ["TensorListFromTensor", "TensorListStack"]
    assert clusters_of(graph.as_graph_def(), [y.name, made.name]) == []
