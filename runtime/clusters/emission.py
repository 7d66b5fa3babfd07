"""Emission: writes the nodes of a cluster as operations of an ONNX model.

Emitters (the modules of `emitters`) are called node by node, in topological order, and add
operations through an Emission. What is known before a run adds none: constants and weights are
transformed by numpy at emission, and shape arithmetic is done on symbolic sizes. Convolutions and
their like want channels first: a value keeps that order (`Value.layout`) through element-wise
operations until an operation wants TensorFlow's order, and `as_is` adds one Transpose a value.

Nothing here imports the engine; the result is pure data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from runtime.clusters.dimensions import Dimension, Shape, SymbolicSize
from runtime.clusters.values import Layout, Value, Weight
from runtime.framework.dtypes import DataType, from_numpy
from runtime.graph.node import Node

MICROSOFT = "com.microsoft"  # the domain of ONNX Runtime's own operations


class DeclinedError(Exception):
    """An emitter can't write this node, for a reason that was not visible before emission."""


@dataclasses.dataclass(slots=True, eq=False)
class Operation:
    """One operation of the model; None among `inputs` is an optional input that is left out."""

    op_type: str
    inputs: list[Value | None]
    outputs: list[Value]
    attributes: dict[str, Any]
    domain: str
    name: str  # of the TensorFlow node from which it comes, so that an engine's errors show it


def live_operations(operations: Sequence[Operation], outputs: Iterable[Value]) -> list[Operation]:
    """Return the operations on which `outputs` depend, in their order.

    An engine keeps operations whose results nobody reads, and these can prevent fusions.
    """
    wanted = {value.name for value in outputs}
    live = []
    for operation in reversed(operations):
        if any(value.name in wanted for value in operation.outputs):
            live.append(operation)
            wanted.update(value.name for value in operation.inputs if value is not None)
    return live[::-1]


class Emission:
    """The model of one cluster while it is written."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.inputs: list[Value] = []
        self.finite: list[Value] = []  # values that must be finite, until `add_checks`
        self.checks: list[Value] = []  # scalars; a run counts only if each is finite
        self.node_name = ""  # of the node that is being emitted
        # Nodes whose results are only added and multiplied, so that an error which is small beside
        # 1 stays so. The logarithm of a small result, or its reciprocal, shows its relative error.
        self.summed: frozenset[Node] = frozenset()
        self._count = 0
        self._other_layout: dict[Value, Value] = {}
        self._symbols: dict[str, tuple[Value, int]] = {}  # symbol → (input, axis) that has its size
        self._symbol_sizes: dict[str, Value] = {}

    # Values

    def input(self, dtype: DataType, shape: Shape) -> Value:
        """Return a new input of the model, whose value is given at a run, in TensorFlow's order."""
        value = Value(dtype, shape, self._new_name("input"))
        self.inputs.append(value)
        for axis, size in enumerate(shape):
            if isinstance(size, SymbolicSize) and size.factor == 1 and len(size.symbols) == 1:
                self._symbols.setdefault(size.symbols[0], (value, axis))
        return value

    def constant(
        self, array: np.ndarray | float | int | bool, dtype: DataType | None = None
    ) -> Value:
        """Return a value with known elements; `dtype` converts a Python number."""
        array = np.asarray(array, None if dtype is None else dtype.numpy)
        return Value(from_numpy(array.dtype), array.shape, constant=array)

    def weight(self, array: np.ndarray, position: int) -> Value:
        """Return the value of a source: array number `position` of those derived from variables."""
        return Value(from_numpy(array.dtype), array.shape, weight=Weight(array, position=position))

    def derive(self, function: Callable[..., np.ndarray], *values: Value) -> Value:
        """Return `function` of constants and weights, which is a constant if all `values` are.

        `function` takes and returns arrays. It runs now, and again when a variable changes, so its
        result must have the same shape and type then. Raises DeclinedError if a value is known at a
        run only.
        """
        arrays: list[np.ndarray] = []
        operands: list[Weight | np.ndarray] = []
        for value in values:
            if value.array is None:
                raise DeclinedError("an operand must be a constant or derived from variables")
            arrays.append(value.array)
            operands.append(value.array if value.weight is None else value.weight)
        result = np.asarray(function(*arrays))
        if all(value.weight is None for value in values):
            return self.constant(result)
        weight = Weight(result, function=function, operands=operands)
        return Value(from_numpy(result.dtype), result.shape, weight=weight)

    def sizes(self, sizes: Sequence[Dimension], dtype: DataType = DataType.INT64) -> Value:
        """Return the vector `[n]` of sizes, which is a constant if all are integers."""
        if any(isinstance(size, SymbolicSize) for size in sizes):
            return Value(dtype, (len(sizes),), sizes=tuple(sizes))
        return self.constant(np.array(sizes, dtype.numpy))

    def size(self, size: Dimension, dtype: DataType = DataType.INT64) -> Value:
        """Return the scalar of a size, which is a constant if it is an integer."""
        if isinstance(size, SymbolicSize):
            return Value(dtype, (), sizes=(size,))
        return self.constant(np.array(size, dtype.numpy))

    # Operations

    def op(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        dtype: DataType,
        shape: Shape,
        *,
        layout: Layout = Layout.AS_IS,
        domain: str = "",
        **attributes: Any,
    ) -> Value:
        """Add an operation with one output, and return the output.

        `shape` is TensorFlow's, `layout` the order that the operation leaves. The inputs are taken
        in the layout that they have. An attribute is an int, a float, a string or a list of one of
        these; None leaves it out.
        """
        return self.ops(
            op_type, inputs, [(dtype, shape)], layout=layout, domain=domain, **attributes
        )[0]

    def ops(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[tuple[DataType, Shape]],
        *,
        layout: Layout = Layout.AS_IS,
        domain: str = "",
        **attributes: Any,
    ) -> list[Value]:
        """Add an operation with several outputs, and return these."""
        made = [
            Value(dtype, tuple(shape), self._new_name(op_type), layout) for dtype, shape in outputs
        ]
        given = {name: value for name, value in attributes.items() if value is not None}
        operands = [None if value is None else self.in_model(value) for value in inputs]
        self.operations.append(Operation(op_type, operands, made, given, domain, self.node_name))
        return made

    def require_finite(self, value: Value) -> None:
        """Make runs fail in which an element of `value` is not finite; numpy kernels run instead.

        For inputs of an operation with which the engine differs from TensorFlow. In the model a
        `value` of more than two axes is batch, channels, then spatial axes.
        """
        self.finite.append(self.in_model(value))

    def add_checks(self) -> None:
        """Add the operations that tell whether all values are finite that have to be.

        The mean over space, where there is space, is the cheapest operation that shows it, in
        whatever order of axes the engine has a tensor.
        """
        producers = {each.name: made for made in self.operations for each in made.outputs}
        for value in self.finite:
            pad = producers.get(value.name)
            while pad is not None and pad.op_type == "Pad" and pad.inputs[0] is not None:
                value = pad.inputs[0]  # what is put around it is finite
                pad = producers.get(value.name)
            shape = value.model_shape
            ones = (*shape[:2], *(1,) * (len(shape) - 2))
            if len(shape) > 2:
                value = self.op("GlobalAveragePool", [value], value.dtype, ones)
            self.checks.append(self.op("ReduceSum", [value], value.dtype, (), keepdims=0))
        self.finite.clear()

    def in_model(self, value: Value) -> Value:
        """Return `value` after making sure that the model has it.

        Constants and weights become initializers or inputs when the model is serialised; symbolic
        sizes become operations that read them from the inputs of the model.
        """
        if value.name:
            return value
        if value.array is not None:
            value.name = self._new_name("weight" if value.weight is not None else "constant")
            return value
        if value.sizes is None:
            raise AssertionError(f"a value of {self.node_name} has neither name nor elements")
        made = self._sizes_at_run(value)
        value.name = made.name
        return value

    # Layout

    def as_is(self, value: Value) -> Value:
        """Return `value` in TensorFlow's order of axes."""
        if value.layout is Layout.AS_IS:
            return value
        return self._transposed(value, Layout.AS_IS)

    def channels_first(self, value: Value) -> Value:
        """Return `value`, of rank 3 to 5, with its channels before the spatial axes."""
        if value.layout is Layout.CHANNELS_FIRST:
            return value
        if value.array is not None:
            order = (0, value.rank - 1, *range(1, value.rank - 1))
            moved = self.derive(lambda array: array.transpose(order), value)
            return self._moved(moved, value.shape)
        return self._transposed(value, Layout.CHANNELS_FIRST)

    def _moved(self, moved: Value, shape: Shape) -> Value:
        moved.shape, moved.layout = shape, Layout.CHANNELS_FIRST
        return moved

    def _transposed(self, value: Value, layout: Layout) -> Value:
        found = self._other_layout.get(value)
        if found is None:
            rank = value.rank
            first = [0, rank - 1, *range(1, rank - 1)]
            last = [0, *range(2, rank), 1]
            order = first if layout is Layout.CHANNELS_FIRST else last
            found = self.op(
                "Transpose", [value], value.dtype, value.shape, layout=layout, perm=order
            )
            self._other_layout[value] = found
            self._other_layout[found] = value
        return found

    # Patterns

    def take_operations(self) -> list[Operation]:
        """Remove and return all operations; operations added from now on form a model anew."""
        taken, self.operations = self.operations, []
        # These may be operations that are not added again.
        self._other_layout.clear()
        self._symbol_sizes.clear()
        return taken

    # Symbolic sizes

    def _sizes_at_run(self, value: Value) -> Value:
        """Add operations that compute `value.sizes` from the shapes of the inputs."""
        assert value.sizes is not None
        parts = [self._size_at_run(size) for size in value.sizes]
        vector = (
            parts[0]
            if len(parts) == 1
            else self.op("Concat", parts, DataType.INT64, (len(parts),), axis=0)
        )
        if value.rank == 0:
            shape = self.constant(np.zeros(0, np.int64))
            vector = self.op("Reshape", [vector, shape], DataType.INT64, ())
        if value.dtype is not DataType.INT64:
            to = ONNX_TYPES[value.dtype]
            vector = self.op("Cast", [vector], value.dtype, value.shape, to=to)
        return vector

    def _size_at_run(self, size: Dimension) -> Value:
        if not isinstance(size, SymbolicSize):
            return self.constant(np.array([size], np.int64))
        result = None
        for each in size.symbols:
            known = self._symbol_size(each)
            result = known if result is None else self._multiplied(result, known)
        assert result is not None
        if size.factor != 1:
            result = self._multiplied(result, self.constant(np.array([size.factor], np.int64)))
        return result

    def _multiplied(self, left: Value, right: Value) -> Value:
        return self.op("Mul", [left, right], DataType.INT64, (1,))

    def _symbol_size(self, name: str) -> Value:
        found = self._symbol_sizes.get(name)
        if found is None:
            source, axis = self._symbols[name]
            found = self.op("Shape", [source], DataType.INT64, (1,), start=axis, end=axis + 1)
            self._symbol_sizes[name] = found
        return found

    def _new_name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._count}"


# TensorFlow's element types that a model may have → ONNX's numbers.
ONNX_TYPES: dict[DataType, int] = {
    DataType.FLOAT: 1,
    DataType.UINT8: 2,
    DataType.INT8: 3,
    DataType.UINT16: 4,
    DataType.INT16: 5,
    DataType.INT32: 6,
    DataType.INT64: 7,
    DataType.BOOL: 9,
    DataType.HALF: 10,
    DataType.DOUBLE: 11,
    DataType.UINT32: 12,
    DataType.UINT64: 13,
    DataType.BFLOAT16: 16,
}
