"""How many bytes a graph keeps in memory, estimated from its GraphDef before it is built.

The figures are measured on CPython 3.11 with protobuf's upb, with chains of AddV2 and with scalar
constants; they hold within a factor of 1.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import protos as pb
from runtime.framework.tensor_codec import decoded_bytes
from runtime.graph.node import OpInfo

# Bytes of a Node, its lists of inputs, its attributes as Python values, and its place in the graph.
NODE_BYTES = 1200
# Bytes that a parsed message takes for each byte on the wire, if it has many small fields.
_MESSAGE_FACTOR = 12
_TENSOR_KINDS = ("tensor", "list(tensor)")


def graph_def_bytes(graph_def: pb.GraphDef, find_info: Callable[[str], OpInfo | None]) -> int:
    """Return the bytes that the nodes and functions of `graph_def` will keep in memory.

    Constants count with the arrays of their shapes. `find_info` returns the signature of an op.
    """
    nodes = tensor_wire = tensor_memory = 0
    tensors_of: dict[str, tuple[str, ...]] = {}
    for node in _all_nodes(graph_def):
        nodes += 1
        names = tensors_of.get(node.op)
        if names is None:
            names = tensors_of[node.op] = _tensor_attrs(find_info(node.op))
        for name in names:
            value = node.attr.get(name)
            if value is not None:
                for tensor in (value.tensor,) if value.HasField("tensor") else value.list.tensor:
                    size = tensor.ByteSize()
                    tensor_wire += size
                    tensor_memory += _tensor_bytes(tensor, size)
    others = graph_def.ByteSize() - tensor_wire
    return nodes * NODE_BYTES + others * _MESSAGE_FACTOR + tensor_memory


def _all_nodes(graph_def: pb.GraphDef) -> Iterator[pb.NodeDef]:
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def _tensor_attrs(info: OpInfo | None) -> tuple[str, ...]:
    rules: Iterable[tuple[str, str]] = () if info is None else info.attr_types.items()
    return tuple(name for name, kind in rules if kind in _TENSOR_KINDS)


def _tensor_bytes(tensor: pb.TensorProto, wire: int) -> int:
    """Return the bytes of a parsed tensor, whose size on the wire is `wire`, and of its array."""
    array = decoded_bytes(tensor, wire)
    # Numbers in `tensor_content`, and floats, take as many bytes in the message as in the array.
    is_plain = wire >= array
    return array + (wire if is_plain else wire * _MESSAGE_FACTOR)
