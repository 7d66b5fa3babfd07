"""The variables and tables that a loaded SavedModel lacks because its checkpoint is not there.

Without `variables/variables.index`, loading skips the restore op and says nothing, as TensorFlow
does: whoever loads may give the variables values afterwards. In a folder that is being copied, the
checkpoint has not arrived yet.

TF: tensorflow/cc/saved_model/loader.cc (RunRestore)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import protos as pb
from runtime.framework.attr_value import text
from runtime.framework.resource_manager import ResourceManager
from runtime.framework.resources.lookup_table import LookupTable
from runtime.framework.resources.variable import RefVariable, Variable
from runtime.saved_model.initialization import (
    INIT_OP_SIGNATURE_KEY,
    TRAIN_OP_SIGNATURE_KEY,
    restore_feeds,
)
from runtime.saved_model.loader import SavedModelBundle
from runtime.saved_model.saver_nodes import REFERENCE_VARIABLES, RESOURCE_VARIABLE
from runtime.saved_model.tensor_infos import tensor_names
from runtime.sessions.direct.direct_session import DirectSession

# Checkpoints have the entries of these; other tables are filled by the init op.
_TABLES = ("MutableHashTableV2", "MutableHashTableOfTensorsV2", "MutableDenseHashTableV2")


def unrestored_state(bundle: SavedModelBundle) -> list[str]:
    """Return the nodes of the variables without a value and the tables without an entry that both
    a signature and the restore op reach.

    The list is empty if there is a checkpoint or no restore op, if the init op has filled all of
    them, or if the session is in another process.
    """
    meta_graph_def, session = bundle.meta_graph_def, bundle.session
    restore_op = meta_graph_def.saver_def.restore_op_name
    if not restore_op or not isinstance(session, DirectSession):
        return []
    if restore_feeds(meta_graph_def, bundle.export_dir) is not None:
        return []
    nodes = {node.name: node for node in meta_graph_def.graph_def.node}
    restored = _reached(nodes, [restore_op])
    served: set[str] = set()
    for key, signature in meta_graph_def.signature_def.items():
        if key not in (INIT_OP_SIGNATURE_KEY, TRAIN_OP_SIGNATURE_KEY):
            inputs = {_node_name(name) for name in tensor_names(signature.inputs.values())}
            served |= _reached(nodes, tensor_names(signature.outputs.values()), inputs)
    both = restored & served
    return [name for name in nodes if name in both and _is_empty(nodes[name], session.resources)]


def _reached(
    nodes: dict[str, pb.NodeDef], asked: Iterable[str], fed: Collection[str] = ()
) -> set[str]:
    """Return the nodes on which tensors or nodes depend; functions take variables as inputs."""
    found: set[str] = set()
    pending = [_node_name(name) for name in asked]
    while pending:
        name = pending.pop()
        if name in nodes and name not in fed and name not in found:
            found.add(name)
            pending += map(_node_name, nodes[name].input)
    return found


def _node_name(reference: str) -> str:
    return reference.removeprefix("^").partition(":")[0]


def _is_empty(node: pb.NodeDef, resources: ResourceManager) -> bool:
    """Return whether a node is that of a variable without a value or of a table without entries."""
    name, container = (text(node.attr[key].s) for key in ("shared_name", "container"))
    if node.op == RESOURCE_VARIABLE:
        variable = resources.find(container, Variable, name)
        return variable is None or not variable.is_initialized
    if node.op in REFERENCE_VARIABLES:
        reference = resources.find(container, RefVariable, name or node.name)
        return reference is None or not reference.is_initialized
    if node.op in _TABLES and name:  # a table without a name is not found by its node
        table = resources.find_by_type_name(container, LookupTable.type_name, name)
        return not (isinstance(table, LookupTable) and table.size)
    return False
