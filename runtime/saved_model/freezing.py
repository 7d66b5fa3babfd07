"""Freezing: makes a meta graph whose variables are constants and whose calls are inlined.

Only the nodes that signatures and the init op need are kept; the nodes for training, saving and
restoring are removed. A variable becomes a Const of the same name, and a read of the variable
becomes an Identity. If the body of an If or While takes the handle of a variable, the frozen body
takes the value instead.

TF: tensorflow/python/framework/convert_to_constants.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

import protos as pb
from runtime.foundation.errors import UnimplementedError
from runtime.framework import attr_value
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_to_proto
from runtime.graph.graph import Graph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.node import Node
from runtime.graph.passes.function_inlining import inline_functions
from runtime.graph.passes.pruning import StepGraph, prune
from runtime.saved_model.frozen_functions import FunctionFreezer
from runtime.saved_model.initialization import (
    INIT_OP_SIGNATURE_KEY,
    MAIN_OP_COLLECTION,
    TRAIN_OP_SIGNATURE_KEY,
    asset_file_defs,
    init_op_name,
)
from runtime.saved_model.saver_nodes import REFERENCE_VARIABLES, RESOURCE_VARIABLE
from runtime.saved_model.tensor_infos import rename_tensors, tensor_names

_ASSIGNMENTS = ("Assign", "AssignVariableOp")
Values = Mapping[str, tuple[np.ndarray, DataType]]
ReadVariables = Callable[[Sequence[pb.NodeDef]], Values]


def freeze_meta_graph(
    meta_graph_def: pb.MetaGraphDef, read_variables: ReadVariables
) -> pb.MetaGraphDef:
    """Return the frozen form of a meta graph.

    `read_variables` must return the values that the given variables have after loading, by node
    name. Raises UnimplementedError if a signature changes a variable or passes it to an op that
    can't take a value instead.
    """
    graph = extend_graph(Graph(), meta_graph_def.graph_def)
    outputs = _served_outputs(meta_graph_def)
    init_op = init_op_name(meta_graph_def, "")
    init_ops = [init_op.partition(":")[0]] if init_op else []
    step = prune(graph, (), outputs, init_ops)
    inline_functions(step, graph.library)
    frozen = pb.MetaGraphDef()
    frozen.graph_def.CopyFrom(_frozen_graph_def(graph, step, init_ops, read_variables))
    fetched = (f"{node.name}:{index}" for node, index in step.fetches)
    names = dict(zip(outputs, fetched, strict=True))
    _copy_signatures(meta_graph_def, frozen, names)
    kept = {node.name for node in frozen.graph_def.node}
    frozen.asset_file_def.extend(
        asset
        for asset in asset_file_defs(meta_graph_def)
        if asset.tensor_info.name.partition(":")[0] in kept
    )
    if init_ops:
        frozen.collection_def[MAIN_OP_COLLECTION].node_list.value.extend(init_ops)
    return frozen


def _served_outputs(meta_graph_def: pb.MetaGraphDef) -> list[str]:
    """Return the names of the output and input tensors of the signatures that can be served.

    The inputs are included because freezing must keep their nodes too.
    """
    names: dict[str, None] = {}
    for key, signature in sorted(meta_graph_def.signature_def.items()):
        if key not in (INIT_OP_SIGNATURE_KEY, TRAIN_OP_SIGNATURE_KEY):
            infos = [*signature.outputs.values(), *signature.inputs.values()]
            names |= dict.fromkeys(tensor_names(infos))
    return list(names)


def _copy_signatures(
    meta_graph_def: pb.MetaGraphDef, frozen: pb.MetaGraphDef, names: Mapping[str, str]
) -> None:
    for key, signature in meta_graph_def.signature_def.items():
        if key == TRAIN_OP_SIGNATURE_KEY:
            continue
        frozen.signature_def[key].CopyFrom(signature)
        for infos in (frozen.signature_def[key].inputs, frozen.signature_def[key].outputs):
            for info in infos.values():
                rename_tensors(info, names)


def _frozen_graph_def(
    graph: Graph, step: StepGraph, init_ops: list[str], read_variables: ReadVariables
) -> pb.GraphDef:
    served = set(_with_ancestors([node for node, _ in step.fetches]))
    nodes = _topological_order(
        _with_ancestors([*(node for node, _ in step.fetches), *step.targets])
    )
    live = {
        node.inputs[0][0] for node in nodes if node.op in _ASSIGNMENTS and node not in served
    } - served
    frozen = [node for node in nodes if _is_variable(node) and node not in live]
    freezer = _Freezer(graph, read_variables([node.to_node_def() for node in frozen]), live)
    graph_def = pb.GraphDef(versions=graph.versions)
    for node in nodes:
        graph_def.node.append(freezer.freeze(node, is_served=node in served))
    for name in init_ops:
        if name not in {node.name for node in nodes}:  # The init op was a call that was inlined.
            controls = [f"^{control.name}" for control in step.targets]
            graph_def.node.append(pb.NodeDef(name=name, op="NoOp", input=controls))
    graph_def.library.CopyFrom(freezer.functions.library_of(graph_def.node))
    return graph_def


def _is_variable(node: Node) -> bool:
    return node.op == RESOURCE_VARIABLE or node.op in REFERENCE_VARIABLES


class _Freezer:
    """Freezes nodes; the caller must freeze the inputs of a node before the node."""

    def __init__(self, graph: Graph, values: Values, live: set[Node]) -> None:
        """Take the values of the variables to freeze, by node name.

        The variables in `live` stay variables: the init op assigns them, and no signature uses
        them.
        """
        self._live = live
        self.functions = FunctionFreezer(graph.library)
        self._values = values
        self._value_outputs: dict[
            tuple[str, int], DataType
        ] = {}  # output that was a handle and is now a value → type of the value

    def freeze(self, node: Node, is_served: bool) -> pb.NodeDef:
        """Return the frozen form of `node`; `is_served` says whether a signature needs the node.

        If only the init op needs the node and the node changes a frozen variable, it becomes a
        NoOp, because the constants already have the values after the init op. Raises
        UnimplementedError if a signature needs such a node.
        """
        node_def = node.to_node_def()
        if node in self._live:
            return node_def
        if _is_variable(node):
            if node.op == RESOURCE_VARIABLE:
                self._value_outputs[(node.name, 0)] = self._values[node.name][1]
            return _constant(node_def, self._values)
        types = [self._value_outputs.get((source.name, index)) for source, index in node.inputs]
        try:
            if any(node.input_is_ref) and node.inputs[0][0] not in self._live:
                raise UnimplementedError(f"Can't freeze: {node.op} changes a variable", node.name)
            value_outputs = self.functions.freeze_node(node_def, types)
        except UnimplementedError:
            if is_served:
                raise
            return pb.NodeDef(name=node.name, op="NoOp")
        self._value_outputs |= {(node.name, index): dtype for index, dtype in value_outputs.items()}
        return node_def


def _with_ancestors(roots: Sequence[Node]) -> list[Node]:
    """Return the nodes of `roots` and all nodes on which they depend."""
    pending = list(roots)
    kept: dict[Node, None] = {}
    while pending:
        node = pending.pop()
        if node not in kept:
            kept[node] = None
            pending += [source for source, _ in node.inputs] + node.control_inputs
    return list(kept)


def _topological_order(nodes: list[Node]) -> list[Node]:
    """Return `nodes` sorted so that each follows its inputs, except along back edges of loops."""
    done: dict[Node, None] = {}
    for root in nodes:
        stack = [(root, False)]
        entered: set[Node] = set()
        while stack:
            node, is_left = stack.pop()
            if is_left:
                done[node] = None
            elif node not in done and node not in entered:
                entered.add(node)
                stack.append((node, True))
                sources = [source for source, _ in node.inputs] + node.control_inputs
                stack += [(source, False) for source in sources if source not in done]
    return list(done)


def _constant(node_def: pb.NodeDef, values: Values) -> pb.NodeDef:
    """Return a Const with the name and the value of the variable `node_def`."""
    value, dtype = values[node_def.name]
    constant = pb.NodeDef(name=node_def.name, op="Const", device=node_def.device)
    constant.attr["dtype"].CopyFrom(attr_value.to_proto(dtype))
    constant.attr["value"].tensor.CopyFrom(tensor_to_proto(value, dtype))
    return constant
