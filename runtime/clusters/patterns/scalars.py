"""Products of a number and values, in whatever order and with whatever operations written."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from runtime.clusters.emission import Operation
from runtime.clusters.patterns.pattern import OperationGraph
from runtime.clusters.values import Value

_TOLERANCE = 1e-6  # relative; single precision rounds numbers of the graph by less
_FOLLOWED = ("Mul", "Div", "Neg", "Pow")


@dataclasses.dataclass(frozen=True, slots=True)
class Product:
    """A number times values."""

    number: float
    factors: tuple[Value, ...] = ()

    def times(self, other: Product) -> Product:
        """Return the product of both."""
        return Product(self.number * other.number, self.factors + other.factors)

    def is_of(self, number: float, *values: Value) -> bool:
        """Return whether this is `number`, but for rounding, times `values` in some order."""
        names = sorted(value.name for value in values)
        return sorted(each.name for each in self.factors) == names and is_number(
            self.number, number
        )


def scalar(value: Value | None) -> float | None:
    """Return the number that a constant of one element is; None of all other values."""
    if value is None or value.constant is None or value.constant.size != 1:
        return None
    if value.constant.dtype.kind != "f":
        return None
    return float(value.constant.ravel()[0])


def is_number(number: float | None, wanted: float) -> bool:
    """Return whether a number is `wanted`, but for rounding."""
    return number is not None and math.isclose(number, wanted, rel_tol=_TOLERANCE)


def product(graph: OperationGraph, value: Value, until: Value | None = None) -> Product:
    """Return `value` as a product of a number and of values that are no products themselves.

    The value `until` is taken as it is.
    """
    number = scalar(value)
    if number is not None:
        return Product(number)
    operation = graph.producer(value, *_FOLLOWED)
    found = None
    if operation is not None and (until is None or value.name != until.name):
        found = product_of(graph, operation, until)
    return Product(1.0, (value,)) if found is None else found


def product_of(
    graph: OperationGraph, operation: Operation, until: Value | None = None
) -> Product | None:
    """Return the result of an operation as a product, None if it is none.

    Products, quotients by a number, negations, squares and cubes are followed.
    """
    left, right = (*operation.inputs, None)[:2]
    assert left is not None
    if operation.op_type == "Neg":
        return Product(-1.0).times(product(graph, left, until))
    if operation.op_type == "Mul" and right is not None:
        return product(graph, left, until).times(product(graph, right, until))
    number = scalar(right)
    if operation.op_type == "Div" and number:
        return Product(1 / number).times(product(graph, left, until))
    if operation.op_type == "Pow" and number in (2.0, 3.0):
        base = product(graph, left, until)
        return base.times(base) if number == 2.0 else base.times(base).times(base)
    return None


def multiples(graph: OperationGraph, value: Value) -> Iterator[tuple[float, Value]]:
    """Yield each (number, factor) of which `value` is the product, from itself inward."""
    number = 1.0
    while True:
        yield number, value
        operation = graph.producer(value, "Mul", "Div", "Neg")
        if operation is None:
            return
        left, right = (*operation.inputs, None)[:2]
        if operation.op_type == "Mul" and scalar(left) is not None:
            left, right = right, left
        by = -1.0 if operation.op_type == "Neg" else scalar(right)
        if not by or left is None:
            return
        number, value = number / by if operation.op_type == "Div" else number * by, left
