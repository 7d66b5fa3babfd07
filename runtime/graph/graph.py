"""Graph: nodes by name, the functions that they call, and the version of the GraphDef.

Guarantees: a graph never changes; `extend_graph` returns a new one. Therefore a running step keeps
its graph while another thread extends the session.

TF: tensorflow/core/graph/graph.h (Graph)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import protos as pb
from runtime.foundation.gradual_freeing import free_elements
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.node import Node

CURRENT_VERSION = 2474  # GraphDef version of TensorFlow 2.21, the release that this runtime follows
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
    bytes_held: int = 0  # what the nodes and functions keep in memory, estimated

    def __del__(self) -> None:
        free_elements(self, "nodes")

    def to_graph_def(self) -> pb.GraphDef:
        """Return the whole graph as a GraphDef."""
        graph_def = pb.GraphDef(versions=self.versions, library=self.library.to_proto())
        graph_def.node.extend(node.to_node_def() for node in self.nodes.values())
        return graph_def
