"""How many bytes the compiled form of a step keeps in memory.

The figures are measured on CPython 3.11 with chains of AddV2; they hold within a factor of 1.5.
"""

from __future__ import annotations

import numpy as np

from runtime.graph.passes.pruning import StepGraph

# Bytes of a node's clone, its instruction, and its slots; of its generated code.
_NODE_BYTES = 1400
_CODE_BYTES = 4000
MAX_GENERATED = 20_000  # number of instructions; the time and memory of compiling grow with it


def plan_bytes(graph: StepGraph) -> int:
    """Return the bytes of an executor of `graph`, with the constants that folding has made."""
    nodes = len(graph.nodes)
    each = _NODE_BYTES + (_CODE_BYTES if nodes <= MAX_GENERATED else 0)
    folded = 0
    for node in graph.nodes:
        if node.op == "Const" and not node.node_def.attr:  # a constant of the graph has attributes
            value = node.attr("value")
            folded += value.nbytes if isinstance(value, np.ndarray) else 0
    return nodes * each + folded
