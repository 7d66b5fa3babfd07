"""Mutations of graphs that keep their structure: attributes, constants, feeds, edges, more nodes.

Pure: the same random numbers give the same mutations.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

import numpy as np

import protos as pb
from runtime.foundation.errors import OpError
from runtime.framework import op_def_registry
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from tests.fuzz.seeds import Seed

INTEGERS = (
    *(0, 1, -1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 127, 255, 256, 1000, 1 << 16, 1 << 20),
    *((1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 32, 1 << 40, (1 << 63) - 1, -(1 << 63), -2, -7),
)  # fmt: skip
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, 3e38, float("inf"), float("-inf"), float("nan"))
_TEXTS = (b"SAME", b"VALID", b"EXPLICIT", b"NHWC", b"NCHW", b"NDHWC", b"REFLECT", b"SYMMETRIC", b"")
_TYPES = (
    *(pb.DT_FLOAT, pb.DT_DOUBLE, pb.DT_INT32, pb.DT_INT64, pb.DT_UINT8, pb.DT_INT8, pb.DT_BOOL),
    *(pb.DT_HALF, pb.DT_INT16, pb.DT_UINT16, pb.DT_UINT32, pb.DT_UINT64, pb.DT_BFLOAT16),
)  # fmt: skip
_SIZES = (0, 0, 1, 2, 3, 5, 7, 16, 33, 100)
_LARGEST_FEED = 1 << 22  # elements
_WITH_VARIABLES = 0.4  # of the graphs


@dataclasses.dataclass
class Hostile:
    """A seed that mutations change; its graph is its own.

    `targets` run before the steps, `assignments` between them.
    """

    graph: pb.GraphDef
    feeds: dict[str, np.ndarray]
    fetches: list[str]
    targets: list[str]
    assignments: list[str] = dataclasses.field(default_factory=list)


def mutated(seed: Seed, random_state: random.Random) -> Hostile:
    """Return a copy of the seed after a few mutations."""
    graph = pb.GraphDef()
    graph.CopyFrom(seed.graph)
    made = Hostile(graph, dict(seed.feeds), list(seed.fetches), list(seed.targets))
    for _ in range(random_state.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        random_state.choice(MUTATIONS)(made, random_state)
    if random_state.random() < _WITH_VARIABLES:
        _make_variables(made, random_state)
    return made


def other_feeds(feeds: dict[str, np.ndarray], random_state: random.Random) -> dict[str, np.ndarray]:
    """Return feeds of another batch, shape or content, for a later run of the same graph."""
    kind = random_state.choice(("batch", "batch", "axis", "content"))
    if kind == "content":
        name = random_state.choice(sorted(feeds))
        return {**feeds, name: _other_content(feeds[name], random_state)}
    axis = 0 if kind == "batch" else random_state.randrange(3)
    size = random_state.choice(_SIZES)
    return {name: _with_size(array, axis, size) for name, array in feeds.items()}


def _make_variables(made: Hostile, random_state: random.Random) -> None:
    """Replace constants of floats by variables, which get their values first and others later."""
    constants = [node for node in made.graph.node if node.op == "Const"]
    for node in constants:
        if node.attr["dtype"].type != pb.DT_FLOAT or random_state.random() < 0.2:
            continue
        try:
            array = tensor_from_proto(node.attr["value"].tensor)
        except OpError:
            continue
        name, node.name = node.name, f"{node.name}/initial"
        other = made.graph.node.add(name=f"{name}/other", op="Const")
        other.attr["dtype"].type = pb.DT_FLOAT
        with np.errstate(all="ignore"):
            changed = _other_content(array * np.float32(1.5), random_state)
        other.attr["value"].tensor.CopyFrom(tensor_to_proto(changed.astype(np.float32)))
        handle = made.graph.node.add(name=f"{name}/handle", op="VarHandleOp")
        handle.attr["shared_name"].s = name.encode()
        handle.attr["shape"].shape.unknown_rank = True
        read = made.graph.node.add(name=name, op="ReadVariableOp", input=[handle.name])
        nodes = [handle, read]
        for value, listed in ((node.name, made.targets), (other.name, made.assignments)):
            assign = made.graph.node.add(
                name=f"{value}/assign", op="AssignVariableOp", input=[handle.name, value]
            )
            nodes.append(assign)
            listed.append(assign.name)
        for each in nodes:
            each.attr["dtype"].type = pb.DT_FLOAT


def _integer(given: int, random_state: random.Random) -> int:
    return random_state.choice((*INTEGERS, given + 1, given - 1, given * 2, -given))


def change_attribute(made: Hostile, random_state: random.Random) -> None:
    node = random_state.choice(_nodes(made.graph))
    names = sorted(name for name in node.attr if node.attr[name].WhichOneof("value") != "func")
    if not names:
        return
    value = node.attr[random_state.choice(names)]
    kind = value.WhichOneof("value")
    if kind == "i":
        value.i = _in_64_bits(_integer(value.i, random_state))
    elif kind == "f":
        value.f = random_state.choice(FLOATS)
    elif kind == "b":
        value.b = not value.b
    elif kind == "s":
        value.s = random_state.choice(_TEXTS)
    elif kind == "type":
        value.type = random_state.choice(_TYPES)
    elif kind == "shape":
        _change_shape(value.shape, random_state)
    elif kind == "tensor":
        _change_tensor(value.tensor, random_state)
    elif kind == "list" and value.list.i:
        _change_integers(value.list.i, random_state)


def _in_64_bits(value: int) -> int:
    return max(-(1 << 63), min(value, (1 << 63) - 1))


def _change_integers(values: list[int], random_state: random.Random) -> None:
    position = random_state.randrange(len(values))
    kind = random_state.randrange(5)
    if kind == 0:
        values.append(random_state.choice(INTEGERS))
    elif kind == 1:
        values.pop()
    else:
        values[position] = _in_64_bits(_integer(values[position], random_state))


def _change_shape(shape: pb.TensorShapeProto, random_state: random.Random) -> None:
    if shape.dim and random_state.random() < 0.7:
        random_state.choice(shape.dim).size = random_state.choice((-1, *_SIZES, 1 << 31, 1 << 62))
    else:
        shape.dim.add(size=random_state.choice((-1, *_SIZES)))


def _change_tensor(tensor: pb.TensorProto, random_state: random.Random) -> None:
    try:
        array = tensor_from_proto(tensor)
    except (OpError, ValueError):
        return
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufb":
        return
    kind = random_state.randrange(5)
    if kind == 0 and tensor.tensor_shape.dim:  # one value that claims to be many
        random_state.choice(tensor.tensor_shape.dim).size = random_state.choice(
            (0, 1, 2, 1000, 1 << 20, 1 << 28, 1 << 40)
        )
        return
    changed = (
        _other_content(array, random_state)
        if kind < 4
        else _with_size(array, random_state.randrange(4), random_state.choice(_SIZES))
    )
    tensor.CopyFrom(tensor_to_proto(changed))


def change_constant(made: Hostile, random_state: random.Random) -> None:
    constants = [node for node in _nodes(made.graph) if node.op == "Const"]
    if constants:
        _change_tensor(random_state.choice(constants).attr["value"].tensor, random_state)


def change_feed(made: Hostile, random_state: random.Random) -> None:
    if not made.feeds:
        return
    name = random_state.choice(sorted(made.feeds))
    array = made.feeds[name]
    kind = random_state.randrange(6)
    if kind < 2:
        array = _with_size(array, random_state.randrange(5), random_state.choice(_SIZES))
    elif kind == 2 and array.ndim:
        array = array[:1].reshape(array.shape[1:]) if len(array) else array.reshape(-1)
    elif kind == 3:
        array = array[np.newaxis]
    else:
        array = _other_content(array, random_state)
    made.feeds[name] = array


def _change_all_batches(made: Hostile, random_state: random.Random) -> None:
    size = random_state.choice(_SIZES)
    made.feeds = {name: _with_size(array, 0, size) for name, array in made.feeds.items()}


def _with_size(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    if axis >= array.ndim:
        return array
    others = array.size // max(array.shape[axis], 1)
    if size * others > _LARGEST_FEED:
        return array
    if not array.shape[axis]:
        shape = (*array.shape[:axis], size, *array.shape[axis + 1 :])
        return np.full(shape, b"" if array.dtype == object else 0, array.dtype)
    return np.take(array, np.arange(size) % array.shape[axis], axis)


def _other_content(array: np.ndarray, random_state: random.Random) -> np.ndarray:
    array = np.array(array)
    if not array.size or array.dtype.kind not in "iufb":
        return array
    position = random_state.randrange(array.size)
    flat = array.reshape(-1)
    if array.dtype.kind == "f":
        number: float = random_state.choice(FLOATS)
        with np.errstate(over="ignore"):
            flat[position] = number
    elif array.dtype.kind in "iu":
        bounds = np.iinfo(array.dtype)
        wanted = _integer(int(flat[position]), random_state)
        flat[position] = max(bounds.min, min(wanted, bounds.max))
    else:
        flat[position] = not flat[position]
    return array


def _retype(made: Hostile, random_state: random.Random) -> None:
    """Replace one element type by another in the whole graph."""
    old = random_state.choice((pb.DT_FLOAT, pb.DT_INT32, pb.DT_INT64, pb.DT_DOUBLE))
    new = random_state.choice(_TYPES[:7])
    numpy_old, numpy_new = (
        tensor_from_proto(pb.TensorProto(dtype=each, tensor_shape=pb.TensorShapeProto())).dtype
        for each in (old, new)
    )
    for node in _nodes(made.graph):
        for name in node.attr:
            value = node.attr[name]
            if value.WhichOneof("value") == "type" and value.type == old:
                value.type = new
            if value.WhichOneof("value") == "tensor" and value.tensor.dtype == old:
                try:
                    array = np.asarray(tensor_from_proto(value.tensor))
                except OpError:  # what an earlier mutation made of it
                    continue
                with np.errstate(all="ignore"):
                    value.tensor.CopyFrom(tensor_to_proto(array.astype(numpy_new)))
    with np.errstate(all="ignore"):
        made.feeds = {
            name: array.astype(numpy_new) if array.dtype == numpy_old else array
            for name, array in made.feeds.items()
        }


def _rewire(made: Hostile, random_state: random.Random) -> None:
    readers = [node for node in made.graph.node if node.input]
    if readers:
        node = random_state.choice(readers)
        source = random_state.choice(made.graph.node)
        node.input[random_state.randrange(len(node.input))] = source.name


def _append(made: Hostile, random_state: random.Random) -> None:
    """Let more nodes read a fetched tensor, and fetch theirs."""
    for _ in range(random_state.randrange(1, 4)):
        position = random_state.randrange(len(made.fetches)) if made.fetches else -1
        if position < 0:
            return
        name = f"appended_{len(made.graph.node)}"
        try:
            node = random_state.choice(_APPENDED)(made, name, made.fetches[position], random_state)
        except (OpError, KeyError):
            return
        made.graph.node.append(node)
        made.fetches[position] = f"{name}:0"


def _constant(made: Hostile, array: np.ndarray) -> str:
    name = f"constant_{len(made.graph.node)}"
    node = made.graph.node.add(name=name, op="Const")
    node.attr["value"].tensor.CopyFrom(tensor_to_proto(array))
    node.attr["dtype"].type = node.attr["value"].tensor.dtype
    return name


def _node(op: str, name: str, *inputs: str, **attributes: object) -> pb.NodeDef:
    """Return a node of floats with the defaults of the op, and with some attributes."""
    node = pb.NodeDef(op=op, name=name, input=inputs)
    for attr in op_def_registry.look_up(op).attr:
        if attr.name in attributes:
            given = attributes[attr.name]
            if isinstance(given, list):
                node.attr[attr.name].list.i.extend(given)
            elif isinstance(given, bytes):
                node.attr[attr.name].s = given
            else:
                assert isinstance(given, int)
                node.attr[attr.name].i = given
        elif attr.HasField("default_value"):
            node.attr[attr.name].CopyFrom(attr.default_value)
        elif attr.type == "type":
            is_index = attr.name in ("Tidx", "Tperm", "Tshape", "Tpaddings", "Tmultiples", "Index")
            node.attr[attr.name].type = pb.DT_INT32 if is_index else pb.DT_FLOAT
    return node


Appended = Callable[[Hostile, str, str, random.Random], pb.NodeDef]


def _unary(op: str) -> Appended:
    return lambda made, name, x, _: _node(op, name, x)


def _with_integers(op: str, *choices: object) -> Appended:
    def node(made: Hostile, name: str, x: str, random_state: random.Random) -> pb.NodeDef:
        array = np.array(random_state.choice(choices), np.int32)
        return _node(op, name, x, _constant(made, array))

    return node


def _convolution(made: Hostile, name: str, x: str, random_state: random.Random) -> pb.NodeDef:
    sizes = [random_state.choice((1, 1, 2, 3, 5)) for _ in range(4)]
    filter = np.linspace(-1, 1, int(np.prod(sizes)), dtype=np.float32).reshape(sizes)
    stride, dilation = random_state.choice((1, 1, 2, 7)), random_state.choice((1, 1, 2, 100))
    op = random_state.choice(("Conv2D", "DepthwiseConv2dNative"))
    padding = random_state.choice((b"SAME", b"VALID"))
    strides, dilations = [1, stride, stride, 1], [1, dilation, dilation, 1]
    return _node(
        op,
        name,
        x,
        _constant(made, filter),
        strides=strides,
        dilations=dilations,
        padding=padding,
    )


def _pool(made: Hostile, name: str, x: str, random_state: random.Random) -> pb.NodeDef:
    window, stride = random_state.choice((1, 2, 3, 100)), random_state.choice((1, 2, 3))
    return _node(
        random_state.choice(("MaxPool", "AvgPool")),
        name,
        x,
        ksize=[1, window, window, 1],
        strides=[1, stride, stride, 1],
        padding=random_state.choice((b"SAME", b"VALID")),
    )


def _binary(made: Hostile, name: str, x: str, random_state: random.Random) -> pb.NodeDef:
    op = random_state.choice(
        ("AddV2", "Mul", "Sub", "Maximum", "RealDiv", "MatMul", "BatchMatMulV2")
    )
    shape = random_state.choice(((), (1,), (2,), (3,), (0,), (2, 2), (3, 3), (4,), (1, 1, 1, 1)))
    other = x if random_state.random() < 0.4 else _constant(made, np.full(shape, 2, np.float32))
    return _node(op, name, x, other)


_APPENDED: tuple[Appended, ...] = (
    *map(_unary, ("Relu", "Neg", "Softmax", "Sigmoid", "Relu6", "Identity", "Rsqrt", "Erf")),
    _with_integers("Mean", 0, -1, [1, 2], [], [0, 1], 7),
    _with_integers("Sum", 0, -1, [1, 2], [], [0, 1]),
    _with_integers("Max", 0, -1, [1, 2], []),
    _with_integers("Reshape", [-1], [0, -1], [-1, 2], [1, -1, 1], [2, 2], [1 << 30, 0, -1]),
    _with_integers("Transpose", [1, 0], [0, 2, 1], [0, 3, 1, 2], [0, 2, 3, 1], [0]),
    _with_integers("Pad", [[1, 1]], [[0, 0], [1, 2]], [[0, 0], [1, 1], [1, 1], [0, 0]]),
    _with_integers("Pad", [[1 << 20, 0]]),
    _with_integers("Tile", [2], [1, 3], [2, 2, 2, 2], [0], [1 << 20], [1 << 16, 1 << 16]),
    _with_integers("ExpandDims", 0, -1, 1, 5),
    _with_integers("BroadcastTo", [3], [2, 2], [0], [1 << 20, 1], [5, 1, 1, 1], [1 << 16, 1 << 16]),
    _convolution,
    _convolution,
    _pool,
    _pool,
    _binary,
    _binary,
)  # fmt: skip
MUTATIONS: tuple[Callable[[Hostile, random.Random], None], ...] = (
    change_attribute,
    change_attribute,
    change_attribute,
    change_constant,
    change_constant,
    change_constant,
    change_feed,
    change_feed,
    _change_all_batches,
    _retype,
    _rewire,
    _append,
    _append,
)


def _nodes(graph: pb.GraphDef) -> list[pb.NodeDef]:
    """Return the nodes of a graph and of its functions."""
    return [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
