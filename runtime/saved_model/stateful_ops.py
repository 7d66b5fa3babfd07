"""The ops with lasting effects or a state of their own that a signature's step reaches.

A step without any gives each caller the same values whichever steps run beside it, so that steps of
several callers can run as one. Reading variables and tables counts as no effect.
"""

from __future__ import annotations

import protos as pb
from runtime.executors.portable_step import NOT_PORTABLE_OPS, PORTABLE_STATEFUL_OPS
from runtime.framework import op_def_registry
from runtime.graph.variable_nodes import VARIABLE_OPS
from runtime.saved_model.inspection import Reachability
from runtime.saved_model.tensor_infos import tensor_names

# Stateful ops that only give a table, or look values up in it.
_TABLE_READS = frozenset(
    (
        "HashTable", "HashTableV2", "MutableHashTableV2", "MutableDenseHashTableV2",
        "MutableHashTableOfTensorsV2", "LookupTableFind", "LookupTableFindV2", "LookupTableSize",
        "LookupTableSizeV2",
    )
)  # fmt: skip
_WITHOUT_EFFECT = PORTABLE_STATEFUL_OPS | VARIABLE_OPS | _TABLE_READS


def stateful_ops(meta_graph_def: pb.MetaGraphDef) -> dict[str, list[str]]:
    """Return, for each signature, the ops that its step reaches and that have an effect or a state.

    Ops that are not registered are listed too, because nothing is known of them.
    """
    graph_def = meta_graph_def.graph_def
    functions = {function.signature.name: function for function in graph_def.library.function}
    walk = Reachability(graph_def.node, functions)
    found = {}
    for key, signature in meta_graph_def.signature_def.items():
        feeds, outputs = (
            tensor_names(infos.values()) for infos in (signature.inputs, signature.outputs)
        )
        found[key] = sorted(filter(_has_effect, walk.ops_reached(feeds, outputs)))
    return found


def _has_effect(op: str) -> bool:
    op_def = op_def_registry.find(op)
    if op_def is None or op in NOT_PORTABLE_OPS:
        return True
    writes = any(argument.is_ref for argument in op_def.input_arg)
    return writes or (op_def.is_stateful and op not in _WITHOUT_EFFECT)
