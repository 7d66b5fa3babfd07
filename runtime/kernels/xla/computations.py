"""Functions of scalars that the Xla… ops are given: called for many elements at once, if they can.

A function whose ops all work element by element gives the same for arrays as for each element; any
other is called element by element. A function that is one addition, maximum, … is numpy's ufunc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.op_kernel import OpKernelContext

# Ops of one node whose result does not depend on the order of their inputs.
_UFUNCS: dict[str, np.ufunc] = {
    "Add": np.add, "AddV2": np.add, "Mul": np.multiply, "Maximum": np.maximum,
    "Minimum": np.minimum, "LogicalAnd": np.logical_and, "LogicalOr": np.logical_or,
    "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor,
}  # fmt: skip
_PASSING = frozenset(("Identity", "StopGradient", "PreventGradient", "Snapshot"))
_ELEMENTWISE = frozenset(
    (*_UFUNCS, *_PASSING, "Abs", "Cast", "Ceil", "Complex", "Const", "Cos", "Div", "DivNoNan",
     "Equal", "Exp", "Expm1", "Floor", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "Imag",
     "Invert", "IsFinite", "IsInf", "IsNan", "LeftShift", "Less", "LessEqual", "Log", "Log1p",
     "LogicalNot", "Mod", "Neg", "NoOp", "NotEqual", "Pow", "Real", "RealDiv", "Reciprocal",
     "RightShift", "Rsqrt", "SelectV2", "Sigmoid", "Sign", "Sin", "Sqrt", "Square",
     "SquaredDifference", "Sub", "Tanh", "TruncateDiv", "TruncateMod", "Xdivy", "Xlogy")
)  # fmt: skip


class Computation:
    """A function of the graph's library whose arguments and results are scalars."""

    def __init__(self, context: OpKernelContext, function: NameAttrList) -> None:
        self._context, self._function = context, function
        library = context.step.function_definitions([function.name])
        found = [each for each in library.function if each.signature.name == function.name]
        if not found:
            raise InvalidArgumentError(f"Function {function.name} is not defined.")
        (definition,) = found
        self.count = len(definition.signature.input_arg)
        self._is_elementwise = all(_is_elementwise(node) for node in definition.node_def)
        self.ufunc = _ufunc_of(definition)

    def __call__(self, *arguments: np.ndarray) -> list[np.ndarray]:
        """Return the results for arrays of one shape: arrays of that shape."""
        shape = np.shape(arguments[0])
        if self.count != len(arguments):
            raise InvalidArgumentError(
                f"Function {self._function.name} takes {self.count} arguments, "
                f"it is called with {len(arguments)}"
            )
        if self.ufunc is not None:
            return [np.asarray(self.ufunc(*arguments))]
        if self._is_elementwise or not shape:
            results = self._context.call_function(self._function, *arguments)
            return [np.broadcast_to(np.asarray(each), shape) for each in results]
        return self._one_by_one(arguments, shape)

    def _one_by_one(
        self, arguments: Sequence[np.ndarray], shape: tuple[int, ...]
    ) -> list[np.ndarray]:
        columns: list[list[np.ndarray]] = []
        for values in zip(*(each.ravel() for each in arguments), strict=True):
            self._context.cancellation.check()
            columns.append(self._scalars(values))
        if not columns:  # nothing to learn the types of the results from
            return [np.empty(shape, each.dtype) for each in arguments]
        return [np.stack(list(each)).reshape(shape) for each in zip(*columns, strict=True)]

    def _scalars(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        results = [
            np.asarray(each) for each in self._context.call_function(self._function, *values)
        ]
        if any(each.shape for each in results):
            raise InvalidArgumentError(f"Function {self._function.name} must return scalars")
        return results


def _is_elementwise(node: pb.NodeDef) -> bool:
    if node.op == "Const":
        return not node.attr["value"].tensor.tensor_shape.dim
    return node.op in _ELEMENTWISE


def _ufunc_of(definition: pb.FunctionDef) -> np.ufunc | None:
    """Return the ufunc that a function of two arguments is, if it is one."""
    inputs = [each.name for each in definition.signature.input_arg]
    nodes = {node.name: node for node in definition.node_def}
    if len(inputs) != 2 or len(definition.ret) != 1 or not all(map(_is_plain, nodes.values())):
        return None
    name = _source(next(iter(definition.ret.values())), nodes)
    node = nodes.get(name)
    if node is None or node.op not in _UFUNCS:
        return None
    given = {_source(each, nodes) for each in node.input if not each.startswith("^")}
    return _UFUNCS[node.op] if given == set(inputs) else None


def _is_plain(node: pb.NodeDef) -> bool:
    return node.op in _PASSING or node.op in _UFUNCS or node.op == "NoOp"


def _source(name: str, nodes: dict[str, pb.NodeDef]) -> str:
    """Return the node or argument from which a value comes, through nodes that pass it on."""
    name = name.partition(":")[0]
    for _ in nodes:  # a damaged function may have a cycle
        if name not in nodes or nodes[name].op not in _PASSING or not nodes[name].input:
            break
        name = nodes[name].input[0].partition(":")[0]
    return name
