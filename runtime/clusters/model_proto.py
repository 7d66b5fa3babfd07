"""Serialises an emission as an ONNX model, with large arrays beside it.

An engine takes large arrays as they are in memory, so they are not copied into the message. In the
*baked* form weights are part of the model; in the *derived* form they are inputs, which the caller
evaluates when a variable changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.clusters.dimensions import SymbolicSize
from runtime.clusters.emission import MICROSOFT, ONNX_TYPES, Operation, live_operations
from runtime.clusters.emit_cluster import EmittedCluster
from runtime.clusters.values import Value, Weight

# Versions that ONNX Runtime 1.32 takes and that newer ones read as well.
IR_VERSION = 9
OPERATOR_SET = 20
MICROSOFT_OPERATOR_SET = 1
# Smaller arrays are in the message itself, because the engine's optimiser reads the elements of
# shapes and axes, which it can't do with arrays beside the message.
_MIN_EXTERNAL_BYTES = 256


@dataclasses.dataclass(frozen=True, slots=True)
class SerializedModel:
    """A model: the message, the arrays beside it by name, and how it is fed.

    Inputs are fed by the names in `inputs`, then the arrays of `weights` by theirs (none in the
    baked form). A result counts only if all `checks`, which are further outputs, are finite.
    """

    message: bytes
    arrays: dict[str, np.ndarray]
    inputs: tuple[str, ...]
    weights: tuple[tuple[str, Weight], ...]
    outputs: tuple[str, ...]
    checks: tuple[str, ...] = ()


def serialize(cluster: EmittedCluster, is_baked: bool) -> SerializedModel:
    """Return the model of an emitted cluster, without operations whose results nobody reads."""
    emission = cluster.emission
    operations = live_operations(emission.operations, (*cluster.outputs, *emission.checks))
    model = pb.onnx.ModelProto(ir_version=IR_VERSION, producer_name="runstep")
    model.opset_import.add(domain="", version=OPERATOR_SET)
    model.opset_import.add(domain=MICROSOFT, version=MICROSOFT_OPERATOR_SET)
    model.graph.name = "cluster"
    for operation in operations:
        _add_operation(model.graph.node.add(), operation)
    for value in emission.inputs:
        _add_value(model.graph.input.add(), value)
    arrays: dict[str, np.ndarray] = {}
    weights: dict[str, Weight] = {}
    for value in _known(operations, cluster.outputs):
        if value.weight is not None and not is_baked:
            weights[value.name] = value.weight
            _add_value(model.graph.input.add(), value)
        else:
            _add_array(model.graph.initializer.add(), value, arrays)
    outputs = _add_outputs(model.graph, cluster.outputs)
    for value in emission.checks:
        _add_value(model.graph.output.add(), value)
    return SerializedModel(
        model.SerializeToString(),
        arrays,
        tuple(value.name for value in emission.inputs),
        tuple(weights.items()),
        outputs,
        tuple(value.name for value in emission.checks),
    )


def _known(operations: Sequence[Operation], outputs: Iterable[Value]) -> list[Value]:
    """Return the constants and weights that operations or outputs use, once each by name."""
    used = [value for operation in operations for value in operation.inputs if value is not None]
    found = {value.name: value for value in (*used, *outputs) if value.array is not None}
    return list(found.values())


def _add_outputs(graph: pb.onnx.GraphProto, outputs: Sequence[Value]) -> tuple[str, ...]:
    """Declare the outputs; one that is an input, an array or listed before becomes a copy."""
    made = {name for node in graph.node for name in node.output}
    names: list[str] = []
    for value in outputs:
        name = value.name
        if name not in made or name in names:
            name = f"output_{len(names)}"
            graph.node.add(op_type="Identity", name=name, input=[value.name], output=[name])
        names.append(name)
        _add_value(graph.output.add(), value)
        graph.output[-1].name = name
    return tuple(names)


def _add_operation(node: pb.onnx.NodeProto, operation: Operation) -> None:
    node.op_type, node.domain = operation.op_type, operation.domain
    # One TensorFlow node can become several operations, and an engine wants names to be unique.
    node.name = f"{operation.name}/{operation.outputs[0].name}"
    node.input.extend("" if value is None else value.name for value in operation.inputs)
    node.output.extend(value.name for value in operation.outputs)
    for name, value in operation.attributes.items():
        _add_attribute(node.attribute.add(), name, value)


def _add_attribute(attribute: pb.onnx.AttributeProto, name: str, value: Any) -> None:
    kinds = pb.onnx.AttributeProto
    attribute.name = name
    if isinstance(value, list | tuple):
        first = value[0] if value else 0
        if isinstance(first, float):
            attribute.type = kinds.FLOATS
            attribute.floats.extend(value)
        elif isinstance(first, str):
            attribute.type = kinds.STRINGS
            attribute.strings.extend(each.encode() for each in value)
        else:
            attribute.type = kinds.INTS
            attribute.ints.extend(map(int, value))
    elif isinstance(value, float):
        attribute.type, attribute.f = kinds.FLOAT, value
    elif isinstance(value, str):
        attribute.type, attribute.s = kinds.STRING, value.encode()
    else:
        attribute.type, attribute.i = kinds.INT, int(value)


def _add_value(info: pb.onnx.ValueInfoProto, value: Value) -> None:
    """Declare an input or output; a symbolic size other than a symbol itself is left open."""
    info.name = value.name
    tensor = info.type.tensor_type
    tensor.elem_type = ONNX_TYPES[value.dtype]
    tensor.shape.SetInParent()
    for size in value.model_shape:
        dimension = tensor.shape.dim.add()
        if not isinstance(size, SymbolicSize):
            dimension.dim_value = size
        elif size.factor == 1 and len(size.symbols) == 1:
            dimension.dim_param = size.symbols[0]


def _add_array(tensor: pb.onnx.TensorProto, value: Value, arrays: dict[str, np.ndarray]) -> None:
    array = value.array
    assert array is not None
    array = np.ascontiguousarray(array) if array.ndim else array
    tensor.name, tensor.data_type = value.name, ONNX_TYPES[value.dtype]
    tensor.dims.extend(array.shape)
    if array.nbytes < _MIN_EXTERNAL_BYTES:
        tensor.raw_data = array.tobytes()
        return
    tensor.data_location = pb.onnx.TensorProto.EXTERNAL
    # The engine requires a location, an offset and a length even of arrays given in memory.
    fields = {"location": value.name, "offset": "0", "length": str(array.nbytes)}
    for key, text in fields.items():
        tensor.external_data.add(key=key, value=text)
    arrays[value.name] = array
