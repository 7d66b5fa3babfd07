"""Conversion of datasets to the graphs that create them, and a fingerprint of such graphs.

TF: tensorflow/core/data/serialization_utils.cc, tensorflow/core/data/hash_utils.cc
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import numpy as np

import protos as pb
from runtime.foundation.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from runtime.framework import op_def_registry
from runtime.framework.attr_value import to_proto
from runtime.framework.data.dataset import Dataset, WindowElements
from runtime.framework.data.seed_generator import SeedGenerator
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import OpKernelContext
from runtime.framework.resource_manager import Resource, ResourceHandle
from runtime.framework.resources.dataset_thread_pool import DatasetThreadPool
from runtime.framework.resources.lookup_table import LookupTable
from runtime.framework.resources.variable import Variable
from runtime.framework.tensor_codec import shape_to_proto, tensor_to_proto
from runtime.framework.tensor_value import TensorValue

OUTPUT = "dataset"  # name of the node that returns the dataset
# Suffixes and prefixes of the names of stateful ops that the functions of a pipeline may contain. A
# pipeline with these ops can still be rebuilt from its graph.
_REBUILDABLE_OP_SUFFIXES = (
    "Assert", "Case", "Dataset", "DatasetV2", "If", "Iterator", "PartitionedCall", "Print",
    "PrintV2", "While",
)  # fmt: skip
_REBUILDABLE_OP_PREFIXES = ("LookupTable", "HashTable", "MutableHashTable", "InitializeTable")


class DatasetGraphBuilder:
    """Builds the graph that creates a dataset, its direct and indirect inputs and resources."""

    def __init__(self, context: OpKernelContext) -> None:
        self._context = context
        self._library: dict[str, pb.FunctionDef] = {}
        self._names: dict[int, str] = {}  # id() of a dataset or resource → name of its node
        self.graph = pb.GraphDef()

    def build(self, dataset: Dataset) -> pb.GraphDef:
        """Return a graph whose node OUTPUT returns the dataset.

        Must be called only once. Raises FailedPreconditionError if the state of a resource can't be
        written to a graph, UnimplementedError if a dataset was not created by a node or a value
        cannot be a TensorProto.
        """
        made = self._dataset(dataset)
        attr = {"T": to_proto(DataType.VARIANT), "index": to_proto(0)}
        self.graph.node.append(pb.NodeDef(name=OUTPUT, op="_Retval", input=[made], attr=attr))
        self.graph.library.function.extend(self._library[name] for name in sorted(self._library))
        return self.graph

    def _dataset(self, dataset: Dataset) -> str:
        known = self._names.get(id(dataset))
        if known is None:
            known = self._names[id(dataset)] = self._dataset_node(dataset)
        return known

    def _dataset_node(self, dataset: Dataset) -> str:
        if isinstance(dataset, WindowElements):
            return self._list_dataset_node(dataset)
        if dataset.origin is None:
            raise UnimplementedError(f"A {dataset.kind}Dataset can't be turned back into a graph")
        node_def = dataset.origin.node.node_def
        self._add_functions(dataset, node_def)
        inputs = [self._value(each) for each in dataset.origin.inputs]
        return self._node(node_def.op, inputs, dict(node_def.attr))

    def _list_dataset_node(self, dataset: WindowElements) -> str:
        """Add a ListDataset node with the elements of `dataset`, and return the node's name."""
        inputs = [self._value(value) for element in dataset.elements for value in element]
        types = to_proto(dataset.output_types)
        repeated = to_proto(dataset.output_types * len(dataset.elements))
        shapes = pb.AttrValue()
        shapes.list.shape.extend(shape_to_proto(shape) for shape in dataset.output_shapes)
        attrs = {"Tinput_types": repeated, "output_types": types, "output_shapes": shapes}
        return self._node("ListDataset", inputs, attrs)

    def _add_functions(self, dataset: Dataset, node_def: pb.NodeDef) -> None:
        functions = [each for attr in node_def.attr.values() for each in _functions(attr)]
        if not functions:
            return
        step = dataset.step_for(self._context.step)
        library = step.function_definitions([each.name for each in functions])
        for function in library.function:
            self._library[function.signature.name] = function

    def _value(self, value: TensorValue) -> str:
        if isinstance(value, np.ndarray) and value.dtype.hasobject and value.ndim == 0:
            value = value.item() if not isinstance(value.item(), bytes | str) else value
        if isinstance(value, Dataset):
            return self._dataset(value)
        if isinstance(value, ResourceHandle):
            return self._resource(value)
        return self._constant(value)

    def _constant(self, value: TensorValue) -> str:
        proto = tensor_to_proto(np.asarray(value) if np.isscalar(value) else value)
        return self._node(
            "Const",
            [],
            {"value": pb.AttrValue(tensor=proto), "dtype": pb.AttrValue(type=proto.dtype)},
        )

    def _resource(self, handle: ResourceHandle) -> str:
        resource: Resource | None = handle.resource
        if resource is None:
            resource = self._context.resources.find_by_type_name(
                handle.container, handle.type_name, handle.name
            )
        key = id(handle if resource is None else resource)
        known = self._names.get(key)
        if known is None:
            known = self._names[key] = self._resource_node(handle, resource)
        return known

    def _resource_node(self, handle: ResourceHandle, resource: Resource | None) -> str:
        if isinstance(resource, LookupTable):
            return self._table(resource)
        if isinstance(resource, Variable):
            return self._variable(resource)
        if isinstance(resource, SeedGenerator):
            first, second = (self._constant(np.int64(seed)) for seed in resource.seeds)
            reshuffles = self._constant(np.bool_(resource.reshuffle_each_iteration))
            return self._node("AnonymousSeedGenerator", [first, second, reshuffles])
        if isinstance(resource, DatasetThreadPool):
            attrs = {"num_threads": resource.num_threads, "display_name": ""}
            return self._node("ThreadPoolHandle", [], _attrs(attrs))
        anonymous = _REPLACEMENT_OPS.get(handle.type_name)
        if anonymous is None:
            raise FailedPreconditionError(
                "Failed to serialize the input pipeline graph: a resource of type "
                f"{handle.type_name} is stateful."
            )
        return self._node(anonymous, [])

    def _table(self, table: LookupTable) -> str:
        keys, values = table.export_values()
        types = {"key_dtype": table.key_dtype, "value_dtype": table.value_dtype}
        handle = self._node("AnonymousHashTable", [], _attrs(types))
        inputs = [handle, self._constant(keys), self._constant(values)]
        types = {"Tin": table.key_dtype, "Tout": table.value_dtype}
        filled = self._node("LookupTableImportV2", inputs, _attrs(types))
        return self._after_node(handle, filled)

    def _variable(self, variable: Variable) -> str:
        attrs = {"dtype": variable.dtype, "shared_name": f"Variable_{id(variable)}"}
        shape = pb.AttrValue(shape=pb.TensorShapeProto(unknown_rank=True))
        handle = self._node("VarHandleOp", [], {**_attrs(attrs), "shape": shape})
        inputs = [handle, self._constant(variable.read())]
        assigned = self._node("AssignVariableOp", inputs, _attrs({"dtype": variable.dtype}))
        return self._after_node(handle, assigned)

    def _after_node(self, handle: str, done: str) -> str:
        """Add a node that returns `handle` after the node `done` has run.

        Returns the name of the new node.
        """
        return self._node("Identity", [handle, f"^{done}"], _attrs({"T": DataType.RESOURCE}))

    def _node(
        self, op: str, inputs: Iterable[str], attrs: dict[str, pb.AttrValue] | None = None
    ) -> str:
        name = f"{op}/_{len(self.graph.node)}"
        self.graph.node.append(pb.NodeDef(name=name, op=op, input=inputs, attr=attrs or {}))
        return name


# Type name of a resource whose state can't be written to a graph → op that creates a substitute.
_REPLACEMENT_OPS = {
    "N10tensorflow4data18MemoryCacheManagerE": "DummyMemoryCache",
    SeedGenerator.type_name: "DummySeedGenerator",
}


def check_no_state(context: OpKernelContext, dataset: Dataset) -> None:
    """Raise FailedPreconditionError if a function of the pipeline contains a stateful op.

    Ops that match _REBUILDABLE_OP_SUFFIXES or _REBUILDABLE_OP_PREFIXES are allowed.
    """
    pending, seen = [dataset], set[int]()
    while pending:
        current = pending.pop()
        if current.origin is None or id(current) in seen:
            continue
        seen.add(id(current))
        node_def = current.origin.node.node_def
        names = [each.name for attr in node_def.attr.values() for each in _functions(attr)]
        for function in current.step_for(context.step).function_definitions(names).function:
            _check_stateless(function)
        pending += [each for each in current.origin.inputs if isinstance(each, Dataset)]


def _attrs(values: Mapping[str, object]) -> dict[str, pb.AttrValue]:
    return {name: to_proto(value) for name, value in values.items()}


def _functions(attr: pb.AttrValue) -> list[pb.NameAttrList]:
    return [each for each in (attr.func, *attr.list.func) if each.name]


def _check_stateless(function: pb.FunctionDef) -> None:
    if not function.signature.is_stateful:  # as in TensorFlow, this flag is trusted
        return
    for node in function.node_def:
        op_def = op_def_registry.find(node.op)
        if op_def is None or not op_def.is_stateful:
            continue
        if not (
            node.op.endswith(_REBUILDABLE_OP_SUFFIXES)
            or node.op.startswith(_REBUILDABLE_OP_PREFIXES)
        ):
            raise FailedPreconditionError(f"{node.op} is stateful.")


# Attributes that do not affect the elements of a dataset.
_ATTRS_WITHOUT_EFFECT = frozenset({"metadata", "_class", "shared_name", "container"})


class _Hasher:
    """Hashes nodes by what they compute; the names of nodes and functions have no influence."""

    def __init__(self, library: pb.FunctionDefLibrary) -> None:
        self._functions = {each.signature.name: each for each in library.function}
        self._hashes: dict[str, bytes] = {}  # function name → hash of the function

    def graph(self, nodes: Iterable[pb.NodeDef], end: str) -> bytes:
        return self._walk({node.name: node for node in nodes}, {}, end)

    def _walk(self, nodes: dict[str, pb.NodeDef], known: dict[str, bytes], end: str) -> bytes:
        """Return the hash of the node input `end`: `name`, `name:output` or `^name`.

        `known` has the hashes found so far. The walk is iterative, because graphs may be deep.
        """
        pending = [end]
        while pending:
            text = pending[-1]
            name, _, rest = text.removeprefix("^").partition(":")
            if text in known:
                pending.pop()
                continue
            node = nodes.get(name)
            if node is None:  # a function's argument; `known` has its name without `:output`
                known[text] = _digest(known.get(name, b"?"), rest.encode())
                continue
            missing = [each for each in node.input if each not in known]
            if missing:
                pending += missing
                continue
            attrs = [
                part
                for key in sorted(node.attr)
                if key not in _ATTRS_WITHOUT_EFFECT
                for part in (key.encode(), self._attr(node.attr[key]))
            ]
            inputs = [known[each] for each in node.input]
            kind = self._function(node.op) if node.op in self._functions else node.op.encode()
            known[text] = _digest(kind, rest.encode(), *attrs, *inputs)
        return known[end]

    def _attr(self, attr: pb.AttrValue) -> bytes:
        functions = _functions(attr)
        if not functions:
            return attr.SerializeToString(deterministic=True)
        return _digest(*(self._function(each.name) for each in functions))

    def _function(self, name: str) -> bytes:
        found = self._hashes.get(name)
        if found is None:
            self._hashes[name] = name.encode()  # used if the function calls itself
            found = self._hashes[name] = self._function_hash(self._functions[name])
        return found

    def _function_hash(self, function: pb.FunctionDef) -> bytes:
        signature = function.signature
        known = {
            argument.name: _digest(b"argument", str(index).encode())
            for index, argument in enumerate(signature.input_arg)
        }
        nodes = {node.name: node for node in function.node_def}
        ends = [function.ret[output.name] for output in signature.output_arg]
        ends += [f"^{name}" for name in sorted(function.control_ret.values())]
        return _digest(*(self._walk(nodes, known, end) for end in ends))


def _digest(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def graph_hash(graph: pb.GraphDef) -> int:
    """Return a 64-bit fingerprint of the graph of a dataset.

    Graphs that differ only in the names of nodes and functions have equal fingerprints. Raises
    InvalidArgumentError if the graph does not have exactly one node OUTPUT.
    """
    ends = [node.input[0] for node in graph.node if node.name == OUTPUT]
    if len(ends) != 1:
        raise InvalidArgumentError(f"A graph of a dataset has one node {OUTPUT!r}")
    return int.from_bytes(_Hasher(graph.library).graph(graph.node, ends[0])[:8], "little")


def as_function(graph: pb.GraphDef, name: str) -> pb.FunctionDef:
    """Convert a dataset's graph to a function `name` that has no arguments and returns the dataset.

    Raises InvalidArgumentError if the graph does not have exactly one output, or if an input of a
    node does not exist.
    """
    nodes = {node.name: node for node in graph.node if node.op != "_Retval"}
    ends = [node.input[0] for node in graph.node if node.op == "_Retval"]
    if len(ends) != 1:
        raise InvalidArgumentError(f"A graph of a dataset returns one value, not {len(ends)}")
    function = pb.FunctionDef(ret={"handle": _function_input(ends[0], nodes)})
    function.signature.name = name
    function.signature.output_arg.add(name="handle", type=pb.DT_VARIANT)
    for node in nodes.values():
        copy = function.node_def.add()
        copy.CopyFrom(node)
        copy.input[:] = [_function_input(each, nodes) for each in node.input]
    return function


def _function_input(text: str, nodes: dict[str, pb.NodeDef]) -> str:
    """Convert the input `node:3` of a graph's node to the form `node:output:0` of a function body.

    Raises InvalidArgumentError if the node or its output does not exist.
    """
    if text.startswith("^"):
        return text
    name, _, position = text.partition(":")
    if name not in nodes:
        raise InvalidArgumentError(f"The graph of a dataset has no node {name!r}")
    node, index = nodes[name], int(position or 0)
    for output in op_def_registry.look_up(node.op).output_arg:
        count = _output_count(output, node)
        if index < count:
            return f"{name}:{output.name}:{index}"
        index -= count
    raise InvalidArgumentError(f"Node {name!r} of the graph of a dataset has no output {position}")


def _output_count(output: pb.OpDef.ArgDef, node: pb.NodeDef) -> int:
    if output.number_attr:
        return int(node.attr[output.number_attr].i)
    if output.type_list_attr:
        return len(node.attr[output.type_list_attr].list.type)
    return 1
