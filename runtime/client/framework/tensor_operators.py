"""The Python operators of tensors and variables.

Each operator adds an operation to the graph; the table in `operators` gives its op. `==` compares
identity, as in TensorFlow 1, so that tensors can be keys of a feed_dict.

TF: tensorflow/python/ops/math_ops.py, tensor.py (overloaded operators)
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from runtime.client.framework.argument_types import SliceKey, TensorLike

Result = TypeVar("Result")  # always Tensor, which inherits these operators
Result_co = TypeVar("Result_co", covariant=True)


class OperatorGraph(Protocol[Result_co]):
    """What the operators need of a graph."""

    def apply_operator(self, operator: str, *operands: TensorLike) -> Result_co:
        """Add the operation that a Python operator means."""

    def slice_tensor(self, tensor: TensorLike, key: SliceKey) -> Result_co:
        """Add a StridedSlice operation that computes `tensor[key]`."""


class TensorOperators(Generic[Result]):
    """The Python operators, which call `graph.apply_operator` and `graph.slice_tensor`."""

    graph: OperatorGraph[Result]
    # makes numpy's operators defer to these, so that array + tensor is a tensor
    __array_priority__ = 100

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __getitem__(self, key: SliceKey) -> Result:
        return self.graph.slice_tensor(self, key)

    def __add__(self, other: TensorLike) -> Result:
        return self._apply("add", self, other)

    def __radd__(self, other: TensorLike) -> Result:
        return self._apply("add", other, self)

    def __sub__(self, other: TensorLike) -> Result:
        return self._apply("sub", self, other)

    def __rsub__(self, other: TensorLike) -> Result:
        return self._apply("sub", other, self)

    def __mul__(self, other: TensorLike) -> Result:
        return self._apply("mul", self, other)

    def __rmul__(self, other: TensorLike) -> Result:
        return self._apply("mul", other, self)

    def __truediv__(self, other: TensorLike) -> Result:
        return self._apply("truediv", self, other)

    def __rtruediv__(self, other: TensorLike) -> Result:
        return self._apply("truediv", other, self)

    def __floordiv__(self, other: TensorLike) -> Result:
        return self._apply("floordiv", self, other)

    def __rfloordiv__(self, other: TensorLike) -> Result:
        return self._apply("floordiv", other, self)

    def __mod__(self, other: TensorLike) -> Result:
        return self._apply("mod", self, other)

    def __rmod__(self, other: TensorLike) -> Result:
        return self._apply("mod", other, self)

    def __pow__(self, other: TensorLike) -> Result:
        return self._apply("pow", self, other)

    def __rpow__(self, other: TensorLike) -> Result:
        return self._apply("pow", other, self)

    def __matmul__(self, other: TensorLike) -> Result:
        return self._apply("matmul", self, other)

    def __rmatmul__(self, other: TensorLike) -> Result:
        return self._apply("matmul", other, self)

    def __lt__(self, other: TensorLike) -> Result:
        return self._apply("Less", self, other)

    def __le__(self, other: TensorLike) -> Result:
        return self._apply("LessEqual", self, other)

    def __gt__(self, other: TensorLike) -> Result:
        return self._apply("Greater", self, other)

    def __ge__(self, other: TensorLike) -> Result:
        return self._apply("GreaterEqual", self, other)

    def __and__(self, other: TensorLike) -> Result:
        return self._apply("and", self, other)

    def __rand__(self, other: TensorLike) -> Result:
        return self._apply("and", other, self)

    def __or__(self, other: TensorLike) -> Result:
        return self._apply("or", self, other)

    def __ror__(self, other: TensorLike) -> Result:
        return self._apply("or", other, self)

    def __xor__(self, other: TensorLike) -> Result:
        return self._apply("xor", self, other)

    def __rxor__(self, other: TensorLike) -> Result:
        return self._apply("xor", other, self)

    def __neg__(self) -> Result:
        return self._apply("Neg", self)

    def __abs__(self) -> Result:
        return self._apply("Abs", self)

    def __invert__(self) -> Result:
        return self._apply("invert", self)

    def _apply(self, operator: str, *operands: TensorLike) -> Result:
        return self.graph.apply_operator(operator, *operands)
