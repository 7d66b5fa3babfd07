"""Rows: whether a cluster computes each row of a batch from the same row of its inputs alone.

Then a batch can be run in slices, one after the other or at the same time. `row_inputs` proves it,
operation by operation; an operation that it doesn't know, or that combines rows, refutes it.

The batch is a symbol (`dimensions`). A value has *rows* if the symbol is a factor of the size of
axis 0, in the order that the model has, and of no other size: the elements of a row then follow
each other in memory, whatever the reshapes before. The checks of a model (`Emission.checks`) may
combine rows, because each slice has its own.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from typing import Any

from runtime.clusters.dimensions import Dimension, Shape, SymbolicSize
from runtime.clusters.emission import Operation, live_operations
from runtime.clusters.emit_cluster import EmittedCluster
from runtime.clusters.values import Value


class _Kind(enum.Enum):
    SAME = "the same for all rows"
    ROWS = "has rows"
    SIZE = "follows from the size of the batch"


@dataclasses.dataclass(frozen=True, slots=True)
class _Use:
    """An operation with at least one operand that has rows, or that repeats its operand."""

    operation: Operation
    operands: tuple[tuple[Value, _Kind], ...]  # without those that are left out

    @property
    def made(self) -> Value:
        """The first output."""
        return self.operation.outputs[0]

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute."""
        return self.operation.attributes.get(name, default)

    def has_rows(self, position: int) -> bool:
        """Return whether an operand has rows, as many as the result."""
        value, kind = self.operands[position]
        return kind is _Kind.ROWS and value.model_shape[0] == self.made.model_shape[0]

    def is_same(self, position: int) -> bool:
        """Return whether an operand is the same for all rows."""
        return self.operands[position][1] is _Kind.SAME

    def constant(self, position: int) -> list[int] | None:
        """Return the integers of an operand, None if they aren't known."""
        if position >= len(self.operands):
            return None
        constant = self.operands[position][0].constant
        return None if constant is None else [int(each) for each in constant.ravel()]


_Rule = Callable[[_Use], bool]


def row_inputs(cluster: EmittedCluster) -> tuple[bool, ...] | None:
    """Return which inputs have rows; None if outputs of a row depend on other rows, or may do so.

    All outputs have rows then.
    """
    batch = _batch(cluster.emission.inputs)
    if batch is None:
        return None
    kinds: dict[str, _Kind] = {}
    for value in cluster.emission.inputs:
        is_batch = value.rank > 0 and value.shape[0] == SymbolicSize(1, (batch,))
        if _mentions(value.shape[is_batch:], batch):
            return None
        kinds[value.name] = _Kind.ROWS if is_batch else _Kind.SAME
    checks = {value.name for value in cluster.emission.checks}
    outputs = (*cluster.outputs, *cluster.emission.checks)
    for operation in live_operations(cluster.emission.operations, outputs):
        if any(value.name in checks for value in operation.outputs):
            continue
        kind = _kind_of(operation, kinds, batch)
        if kind is None:
            return None
        kinds.update((value.name, kind) for value in operation.outputs)
    if any(kinds.get(value.name) is not _Kind.ROWS for value in cluster.outputs):
        return None
    return tuple(kinds[value.name] is _Kind.ROWS for value in cluster.emission.inputs)


def _batch(inputs: list[Value]) -> str | None:
    """Return the symbol of axis 0 of the input with the most axes."""
    main = max(inputs, key=lambda value: value.rank, default=None)
    if main is None or main.rank == 0 or not isinstance(main.shape[0], SymbolicSize):
        return None
    return main.shape[0].symbols[0]


def _mentions(shape: Shape, batch: str) -> bool:
    return any(isinstance(size, SymbolicSize) and batch in size.symbols for size in shape)


def _kind_of(operation: Operation, kinds: Mapping[str, _Kind], batch: str) -> _Kind | None:
    """Return what the outputs of an operation are, None if they depend on several rows."""
    operands: list[tuple[Value, _Kind]] = []
    for value in operation.inputs:
        kind = _Kind.SAME if value is None or value.array is not None else kinds.get(value.name)
        if kind is None:
            return None
        if value is not None:
            operands.append((value, kind))
    given = {kind for _, kind in operands}
    shapes = [value.model_shape for value in operation.outputs]
    if operation.op_type == "Shape":
        covers_batch = operation.attributes.get("start", 0) == 0
        return _Kind.SIZE if _Kind.ROWS in given and covers_batch else _Kind.SAME
    if not any(_mentions(shape, batch) for shape in shapes):
        if _Kind.ROWS in given:
            return None
        return _Kind.SIZE if _Kind.SIZE in given else _Kind.SAME
    rule = _RULES.get(operation.op_type)
    if rule is None or not all(_has_rows(shape, batch) for shape in shapes):
        return None
    data = operands[:1] if operation.op_type in _SHAPED else operands
    if any(kind is _Kind.SIZE for _, kind in data):
        return None
    return _Kind.ROWS if rule(_Use(operation, tuple(operands))) else None


def _has_rows(shape: Shape, batch: str) -> bool:
    if not shape or _mentions(shape[1:], batch):
        return False
    size: Dimension = shape[0]
    return isinstance(size, SymbolicSize) and size.symbols.count(batch) == 1


# --- rules: whether an operation whose outputs could have rows computes each from the same row ---


def _reads_rows(use: _Use) -> bool:
    """Of operations that combine the elements of their first operand, row by row."""
    others = range(1, len(use.operands))
    return use.has_rows(0) and not any(use.operands[each][1] is _Kind.ROWS for each in others)


def _by_element(use: _Use) -> bool:
    """Of operations that broadcast their operands."""
    return all(
        _is_aligned(value, use) if kind is _Kind.ROWS else _is_repeated(value, use)
        for value, kind in use.operands
    )


def _is_aligned(value: Value, use: _Use) -> bool:
    return value.rank == use.made.rank and value.model_shape[0] == use.made.model_shape[0]


def _is_repeated(value: Value, use: _Use) -> bool:
    """Return whether an operand that is the same for all rows has no axis for them."""
    return value.rank < use.made.rank or value.model_shape[0] == 1


def _along(default: int) -> _Rule:
    """Of operations that combine the elements along the attribute `axis`, or behind it."""

    def rule(use: _Use) -> bool:
        value = use.operands[0][0]
        return _reads_rows(use) and use.attribute("axis", default) % value.rank != 0

    return rule


def _along_operand(use: _Use) -> bool:
    """Of operations whose second operand has the axes along which elements are combined."""
    return _reads_rows(use) and _are_not_rows(use, use.constant(1))


def _are_not_rows(use: _Use, axes: list[int] | None) -> bool:
    rank = use.operands[0][0].rank
    return bool(axes) and all(axis % rank != 0 for axis in axes or ())


def _concatenates(use: _Use) -> bool:
    axis = use.attribute("axis", 0) % use.made.rank
    return axis != 0 and all(map(use.has_rows, range(len(use.operands))))


def _slices(use: _Use) -> bool:
    return _reads_rows(use) and _are_not_rows(use, use.constant(3))


def _pads(use: _Use) -> bool:
    paddings = use.constant(1)
    if paddings is None or len(use.operands) > 3:  # with axes
        return False
    before, after = paddings[0], paddings[len(paddings) // 2]
    return _reads_rows(use) and before == after == 0


def _gathers(use: _Use) -> bool:
    axis = use.attribute("axis", 0) % use.operands[0][0].rank
    if use.is_same(0):
        return axis == 0 and use.has_rows(1)
    return axis != 0 and _reads_rows(use)


def _gathers_slices(use: _Use) -> bool:
    return use.is_same(0) and use.has_rows(1) and use.attribute("batch_dims", 0) == 0


def _multiplies(use: _Use) -> bool:
    """Of MatMul: rows are rows of the left matrix, or all operands have them before a matrix."""
    (left, left_kind), (right, right_kind) = use.operands
    if left_kind is _Kind.ROWS and not use.has_rows(0):
        return False
    if right_kind is _Kind.SAME:
        # Of two axes, a matrix for all rows; of more, the first ones must not count the rows.
        return left.rank >= 2 and (right.rank <= 2 or _is_repeated(right, use))
    if right.rank < 3 or not use.has_rows(1) or right.rank != use.made.rank:
        return False
    return left.rank == right.rank if left_kind is _Kind.ROWS else _is_repeated(left, use)


def _multiplies_and_adds(use: _Use) -> bool:
    """Of Gemm."""
    if use.attribute("transA", 0) or not _reads_rows(use):
        return False
    return len(use.operands) < 3 or _is_repeated(use.operands[2][0], use)


def _attends(use: _Use) -> bool:
    """Of attention, whose operands have the batch first."""
    return all(
        use.has_rows(position) if kind is _Kind.ROWS else value.rank < 2 or value.shape[0] == 1
        for position, (value, kind) in enumerate(use.operands)
    )


def _transposes(use: _Use) -> bool:
    return bool(use.attribute("perm", [1])[0] == 0)


def _reshapes(use: _Use) -> bool:
    """Of operations that keep all elements in their order."""
    return use.operands[0][1] is _Kind.ROWS


def _tiles(use: _Use) -> bool:
    repeats = use.constant(1)
    return _reads_rows(use) and repeats is not None and repeats[0] == 1


def _expands(use: _Use) -> bool:
    value, kind = use.operands[0]
    return _is_aligned(value, use) if kind is _Kind.ROWS else _is_repeated(value, use)


_SHAPED = frozenset(("Expand", "Reshape", "Resize"))  # the second operand on: the result's shape
_BY_ELEMENT = (
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitwiseAnd",
    "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "Ceil", "Clip", "Cos", "Cosh", "Div", "Elu",
    "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish",
    "Identity", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Min", "Mod",
    "Mul", "Neg", "Not", "Or", "PRelu", "Pow", "QuickGelu", "Reciprocal", "Relu", "Round", "Selu",
    "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Tan", "Tanh",
    "Where", "Xor",
)  # fmt: skip
_BY_IMAGE = (
    "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "DepthToSpace",
    "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "Resize", "SpaceToDepth",
)  # fmt: skip
_REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(_BY_ELEMENT, _by_element),
    **dict.fromkeys(_BY_IMAGE, _reads_rows),
    **dict.fromkeys(_REDUCTIONS, _along_operand),
    **dict.fromkeys(("LayerNormalization", "LogSoftmax", "Softmax", "TopK"), _along(-1)),
    **dict.fromkeys(("ArgMax", "ArgMin", "Split"), _along(0)),
    "Concat": _concatenates,
    "CumSum": _along_operand,
    "Expand": _expands,
    "Flatten": _along(1),
    "Gather": _gathers,
    "GatherND": _gathers_slices,
    "Gemm": _multiplies_and_adds,
    "MatMul": _multiplies,
    "MultiHeadAttention": _attends,
    "Pad": _pads,
    "Reshape": _reshapes,
    "Slice": _slices,
    "Squeeze": _along_operand,
    "Tile": _tiles,
    "Transpose": _transposes,
    "Unsqueeze": _along_operand,
}
