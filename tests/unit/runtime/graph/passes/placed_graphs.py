"""Graphs whose nodes are placed on given CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import protos as pb
from tests.conformance.case import Graph

PREFIX = "/job:localhost/replica:0/task:0/device:CPU:"


class PlacedGraph(Graph):
    """A graph whose nodes may name a CPU."""

    def on(self, cpu: int, op: str, *inputs: Any, **attrs: Any) -> Any:
        """Add a node on a CPU; return its first output, None where it has none."""
        outputs = self.add(op, *inputs, **attrs)
        self.graph_def.node[-1].device = f"/device:CPU:{cpu}"
        return outputs[0] if outputs else None


def ping_pong(devices: Sequence[int]) -> pb.GraphDef:
    """A chain n0, n1, … of operations on x, placed on the given devices in turn."""
    graph = PlacedGraph()
    value: Any = graph.placeholder("float32", "x")
    for index, cpu in enumerate(devices):
        value = graph.on(cpu, ("Exp", "Neg", "Sigmoid")[index % 3], value, name=f"n{index}")
    return graph.graph_def
