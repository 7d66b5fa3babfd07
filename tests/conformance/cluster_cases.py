"""Conformance cases as clusters can have them: operands that must be known at emission as Const."""

from __future__ import annotations

import dataclasses

import numpy as np

import protos as pb
from runtime.clusters.emitters import EMITTERS
from runtime.framework.tensor_codec import tensor_to_proto
from tests.conformance.case import Case


def ops_of(graph: pb.GraphDef) -> set[str]:
    """Return the ops of a graph and of its functions."""
    functions = [node.op for function in graph.library.function for node in function.node_def]
    return {node.op for node in graph.node} | set(functions)


def with_constants(case: Case) -> Case:
    """Return the case with Const nodes in place of the feeds that must be known at emission."""
    wanted = {
        node.input[index].partition(":")[0]
        for node in case.graph.node
        if node.op in EMITTERS
        for index in EMITTERS[node.op].constants
        if index < len(node.input)
    }
    fed: dict[str, list[np.ndarray]] = {}
    for step in case.steps:
        for name, value in step.feeds.items():
            fed.setdefault(name.partition(":")[0], []).append(value)
    constants = {
        node.name: fed[node.name][0]
        for node in case.graph.node
        if node.op == "Placeholder"
        and node.name in wanted
        and len({value.tobytes() for value in fed.get(node.name, ())}) == 1
    }
    graph = pb.GraphDef()
    graph.CopyFrom(case.graph)
    for node in graph.node:
        if node.name in constants:
            dtype = node.attr["dtype"].type
            node.op = "Const"
            node.attr.clear()
            node.attr["dtype"].type = dtype
            node.attr["value"].tensor.CopyFrom(tensor_to_proto(constants[node.name]))
    steps = tuple(
        dataclasses.replace(
            step,
            feeds={
                name: value
                for name, value in step.feeds.items()
                if name.partition(":")[0] not in constants
            },
        )
        for step in case.steps
    )
    return dataclasses.replace(case, graph=graph, steps=steps)
