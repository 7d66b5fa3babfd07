"""Import of a GraphDef into a graph: either all nodes are added, or none.

TF: tensorflow/python/framework/importer.py, tensorflow/core/common_runtime/graph_constructor.cc
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import protos as pb
from runtime.client.framework.argument_types import ElementLike
from runtime.client.framework.graph import Graph, get_default_graph
from runtime.client.framework.operation import Operation, Tensor
from runtime.foundation.errors import NotFoundError, OpError
from runtime.framework import op_def_registry
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node
from runtime.graph.tensor_name import CONTROL_SLOT, parse_tensor_name

# {name of a tensor or control input in the GraphDef: what replaces it}; see `import_graph_def`.
InputMap: TypeAlias = Mapping[str, ElementLike] | Mapping[bytes, ElementLike]


def import_graph_def(
    graph_def: pb.GraphDef,
    input_map: InputMap | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
) -> list[Operation | Tensor] | None:
    """Add the nodes and functions of `graph_def` to the default graph.

    The prefix `name` is put before node names ("import" if None; no prefix if ""). `input_map`
    replaces tensors (`x:0`, `x`) and control inputs (`^x`) that nodes read. Returns the tensors
    (`y:0`) and operations (`y`) that `return_elements` names, or None if it is None.

    Raises TypeError if an argument has another type, ValueError if the graph is invalid or a name
    is unknown, NotFoundError if an op is unknown.
    """
    if not isinstance(graph_def, pb.GraphDef):
        raise TypeError("Argument `graph_def` must be a GraphDef proto.")
    if input_map is not None and not isinstance(input_map, Mapping):
        raise TypeError(
            f"Argument `input_map` must be a dictionary. Obtained {type(input_map).__name__}"
        )
    if return_elements is not None and not all(
        isinstance(each, str | bytes) for each in return_elements
    ):
        raise TypeError(
            f"Argument `return_elements` must be a list of strings. Obtained {return_elements}."
        )
    graph = get_default_graph()
    with graph.name_scope("import" if name is None else name or None) as scope:
        importer = _Importer(graph, graph_def, _read_map(graph, input_map or {}), scope)
        returned = importer.run([_text(each) for each in return_elements or ()])
    return returned if return_elements is not None else None


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _read_map(graph: Graph, input_map: InputMap) -> dict[tuple[str, int], Operation | Tensor]:
    """Convert `input_map` to {(node, output index): element}; index −1 is a control input."""
    mapped: dict[tuple[str, int], Operation | Tensor] = {}
    for key, value in input_map.items():
        node, index = parse_tensor_name(_text(key))
        is_control = index == CONTROL_SLOT
        mapped[node, index] = graph.as_graph_element(value, allow_operation=is_control)
    return mapped


class _Importer:
    """The state of one call of `import_graph_def`."""

    def __init__(
        self,
        graph: Graph,
        graph_def: pb.GraphDef,
        mapped: dict[tuple[str, int], Operation | Tensor],
        scope: str,
    ) -> None:
        self._graph = graph
        self._graph_def = graph_def
        self._mapped = mapped
        self._used: set[tuple[str, int]] = set()
        self._scope = scope
        self._operations: dict[str, Operation] = {}  # name in the GraphDef → operation

    def run(self, return_elements: Sequence[str]) -> list[Operation | Tensor]:
        """Add all nodes, and return the elements that `return_elements` names."""
        self._graph.check_not_finalized()
        try:
            self._graph.add_functions(self._graph_def.library)
            for node_def in self._graph_def.node:
                self._make(node_def)
            for node_def in self._graph_def.node:
                self._connect(self._operations[node_def.name], node_def)
            self._check_map()
            returned = [self._element(name) for name in return_elements]
        except NotFoundError:
            raise
        except OpError as error:  # TensorFlow's Python API raises ValueError
            raise ValueError(error.message) from None
        self._graph.add_operations(list(self._operations.values()))
        return returned

    def _make(self, node_def: pb.NodeDef) -> None:
        if node_def.name in self._operations:
            raise ValueError(f"Node '{node_def.name}' is not unique")
        copy = pb.NodeDef()
        copy.CopyFrom(node_def)
        copy.name = (
            self._scope + node_def.name
            if self._scope
            else self._graph.unique_name(node_def.name, mark_as_used=True)
        )
        if copy.op not in self._graph.library and op_def_registry.find(copy.op) is None:
            raise NotFoundError(op_def_registry.unknown_op_message(copy.op))
        self._operations[node_def.name] = self._graph.new_operation(copy)

    def _rename_colocations(self, operation: Operation) -> None:
        """Replace the node names in `_class` (colocation groups) by the names in the graph."""
        if "_class" not in operation.node_def.attr:
            return
        names = operation.node_def.attr["_class"].list.s
        for index, name in enumerate(names):
            beside = self._operations.get(name.removeprefix(b"loc:@").decode())
            if name.startswith(b"loc:@") and beside is not None:
                names[index] = b"loc:@" + beside.name.encode()

    def _connect(self, operation: Operation, node_def: pb.NodeDef) -> None:
        inputs: list[Tensor] = []
        controls: list[Operation] = []
        for text in node_def.input:
            source, index = parse_tensor_name(text)
            found = self._mapped.get((source, index))
            if found is not None:
                self._used.add((source, index))
            if index == CONTROL_SLOT:
                controls.append(self._control(found, source, node_def))
                continue
            if controls:
                raise ValueError(
                    f"Node '{node_def.name}': Control dependencies must come after regular "
                    "dependencies"
                )
            assert not isinstance(found, Operation)  # checked by `_read_map`
            inputs.append(found if found is not None else self._tensor(source, index, node_def))
        self._check_types(operation, inputs)
        self._rename_colocations(operation)
        operation.connect(inputs, list(dict.fromkeys(controls)))

    def _source(self, name: str, reader: pb.NodeDef) -> Operation:
        if name not in self._operations:
            raise ValueError(f"Node '{reader.name}': Unknown input node '{name}'")
        return self._operations[name]

    def _control(
        self, mapped: Operation | Tensor | None, name: str, reader: pb.NodeDef
    ) -> Operation:
        if mapped is None:
            return self._source(name, reader)
        return mapped.op if isinstance(mapped, Tensor) else mapped

    def _tensor(self, name: str, index: int, reader: pb.NodeDef) -> Tensor:
        outputs = self._source(name, reader).outputs
        if index >= len(outputs):
            raise ValueError(
                f"Node '{reader.name}': Connecting to invalid output {index} of source node "
                f"{name} which has {len(outputs)} outputs."
            )
        return outputs[index]

    def _check_types(self, operation: Operation, inputs: list[Tensor]) -> None:
        """Raise ValueError if the inputs do not match the op's signature.

        The runtime would reject the graph later with the same message.
        """
        info = self._graph.library.find_info(operation.type)
        assert info is not None  # checked by `_make`
        node = Node(operation.name, info, operation.node_def)
        expected = node.expected_inputs()
        if len(inputs) != len(expected):
            raise ValueError(
                f"NodeDef expected inputs '{_types_text(expected)}' do not match {len(inputs)} "
                f"inputs specified; Op<name={operation.type}>; NodeDef: "
                f"{{{{node {operation.name}}}}}"
            )
        for slot, (tensor, wanted) in enumerate(zip(inputs, expected, strict=True)):
            is_ref = node.input_is_ref[slot]
            if tensor.dtype is not wanted or (is_ref and not tensor.is_ref):
                raise ValueError(
                    f"Input {slot} of node {operation.name} was passed "
                    f"{tensor.dtype.tf_name}{'_ref' if tensor.is_ref else ''} from {tensor.name} "
                    f"incompatible with expected {wanted.tf_name}{'_ref' if is_ref else ''}."
                )

    def _check_map(self) -> None:
        unused = [
            f"^{node}" if index == CONTROL_SLOT else f"{node}:{index}"
            for node, index in self._mapped
            if (node, index) not in self._used and not self._has(node, index)
        ]
        if unused:
            raise ValueError(
                f"Attempted to map inputs that were not found in graph_def: [{', '.join(unused)}]"
            )

    def _has(self, node: str, index: int) -> bool:
        operation = self._operations.get(node)
        return operation is not None and index < len(operation.outputs)

    def _element(self, name: str) -> Operation | Tensor:
        node, index = parse_tensor_name(name)
        if ":" in name and (node, index) in self._mapped:
            return self._mapped[(node, index)]
        if node not in self._operations:
            kind = "tensor" if ":" in name else "node"
            raise ValueError(f"Requested return {kind} '{name}' not found in graph def")
        operation = self._operations[node]
        if ":" not in name:
            return operation
        if index >= len(operation.outputs):
            raise ValueError(
                f"Invalid return output {index} of node '{node}', which has "
                f"{len(operation.outputs)} output(s)"
            )
        return operation.outputs[index]


def _types_text(types: Iterable[DataType]) -> str:
    return ", ".join(each.tf_name for each in types)
