"""Graph: nodes by name, the functions they call, and the versions they were written for.

Guarantees: a graph is never changed; `GraphConstructor` makes the extended one. So a step keeps
the graph it began with while another thread extends.

TF: tensorflow/core/graph/graph.h (Graph)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import protos as pb
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.node import Node

CURRENT_VERSION = 2474  # graph version of TensorFlow 2.21, whose graphs we read
MIN_PRODUCER = 0
RELEASE = "2.21.0"


@dataclasses.dataclass(frozen=True, slots=True)
class Graph:
    """An immutable graph."""

    nodes: Mapping[str, Node] = dataclasses.field(default_factory=dict)
    library: FunctionLibrary = dataclasses.field(default_factory=FunctionLibrary)
    versions: pb.VersionDef = dataclasses.field(
        default_factory=lambda: pb.VersionDef(producer=CURRENT_VERSION)
    )

    def to_graph_def(self) -> pb.GraphDef:
        """The GraphDef of the whole graph."""
        graph_def = pb.GraphDef(versions=self.versions, library=self.library.to_proto())
        graph_def.node.extend(node.to_node_def() for node in self.nodes.values())
        return graph_def
