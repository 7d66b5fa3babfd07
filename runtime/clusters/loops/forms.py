"""Forms: what is known of a value in an iteration of a loop, without its elements.

Equal forms are one object: `Forms` keeps what it made, so forms are compared by identity. Sums and
products are kept in a normal form, in which neither the order of operands nor how weights are cut
and joined matters: products of values with matrices, and their sums, are one LINEAR form.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Hashable, Iterable

import numpy as np

# Bounds of what a graph can make this module do; the forms of three cells need about 300.
_MAX_FORMS = 5000
_MAX_OPERANDS = 100
_MAX_DEPTH = 200


class Kind(enum.Enum):
    """What a form says about its value."""

    # Known before the loop
    INVARIANT = "loop variable that keeps its value; detail: its index"
    CONSTANT = "constant of the function; detail: (type, shape, bytes)"
    DERIVED = "function of invariants and constants; detail: (name, parameters)"
    # Of one iteration
    VARIABLE = "loop variable at the start of the iteration; detail: its index"
    COUNTER = "integer loop variable plus a number; detail: (index, number)"
    ITEM = "element of a list at a counter; operands: list, counter"
    LIST = "list with an element replaced; operands: list, position, element"
    LINEAR = "sources times matrices, and biases, summed; detail: number of sources"
    ACTIVATED = "activation of its operand; detail: Activation"
    CLIPPED = "operand between 0 and a limit; detail: the limit"
    CAPPED = "operand, but at most a limit; detail: the limit"
    PRODUCT = "element-wise product of two operands"
    SUM = "element-wise sum of its operands, of which at most one is LINEAR"
    COMPLEMENT = "1 minus its operand"
    ONES = "ones in the shape of its operand"
    JOINED = "operands one after the other along the last axis"
    LESS = "whether the first operand is less than the second"
    ALL = "whether all operands are true"


_KNOWN = frozenset((Kind.INVARIANT, Kind.CONSTANT, Kind.DERIVED))
# Kinds that are element-wise functions of their operands.
_ELEMENT_WISE = frozenset(
    (Kind.ACTIVATED, Kind.CLIPPED, Kind.CAPPED, Kind.PRODUCT, Kind.SUM, Kind.COMPLEMENT)
)


class UnrecognisedError(Exception):
    """A loop computes something that has no form, or whose form is of no known cell."""


@dataclasses.dataclass(frozen=True, slots=True)
class Activation:
    """An activation function as ONNX names it, with its parameters."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A form; made by `Forms` only. `number` orders the operands of sums and products."""

    kind: Kind
    operands: tuple[Form, ...]
    detail: Hashable
    number: int
    depth: int

    @property
    def is_known(self) -> bool:
        """Whether the value is the same in every iteration."""
        return self.kind in _KNOWN

    @property
    def sources(self) -> tuple[Form, ...]:
        """The sources of a LINEAR form: values of the iteration that matrices multiply."""
        return self.operands[: self._count]

    @property
    def matrices(self) -> tuple[Form, ...]:
        """The matrices of a LINEAR form `[width of the source, units]`, in the order of sources."""
        return self.operands[self._count : 2 * self._count]

    @property
    def biases(self) -> tuple[Form, ...]:
        """The vectors `[units]` that a LINEAR form adds."""
        return self.operands[2 * self._count :]

    @property
    def _count(self) -> int:
        assert self.kind is Kind.LINEAR and isinstance(self.detail, int)
        return self.detail


class Forms:
    """Makes forms, and arithmetic on them. Raises UnrecognisedError for what has no form."""

    def __init__(self) -> None:
        self._made: dict[tuple[Kind, tuple[Form, ...], Hashable], Form] = {}
        self._cut: dict[tuple[Form, str, Hashable], Form] = {}

    def make(self, kind: Kind, *operands: Form, detail: Hashable = None) -> Form:
        """Return the form of this kind, operands and detail."""
        key = (kind, operands, detail)
        form = self._made.get(key)
        if form is None:
            depth = 1 + max((each.depth for each in operands), default=0)
            if len(self._made) >= _MAX_FORMS or len(operands) > _MAX_OPERANDS or depth > _MAX_DEPTH:
                raise UnrecognisedError("more than a few cells compute")
            form = self._made[key] = Form(kind, operands, detail, len(self._made), depth)
        return form

    def constant(self, array: np.ndarray) -> Form:
        """Return the form of a constant."""
        return self.make(Kind.CONSTANT, detail=(array.dtype.str, array.shape, array.tobytes()))

    def derived(self, function: str, *operands: Form, parameters: Hashable = ()) -> Form:
        """Return the form of a function in `weights.FUNCTIONS` of known values."""
        return self.make(Kind.DERIVED, *operands, detail=(function, parameters))

    def activated(self, form: Form, name: str, alpha: float = 0.0, beta: float = 0.0) -> Form:
        """Return the form of ONNX's activation `name`."""
        return self.make(Kind.ACTIVATED, form, detail=Activation(name, alpha, beta))

    def linear(
        self, sources: Iterable[Form], matrices: Iterable[Form], biases: Iterable[Form] = ()
    ) -> Form:
        """Return the sum of sources times matrices, and biases."""
        sources = tuple(sources)
        return self.make(Kind.LINEAR, *sources, *matrices, *biases, detail=len(sources))

    # Arithmetic

    def add(self, left: Form, right: Form) -> Form:
        """Return the element-wise sum of two values."""
        if left.is_known and right.is_known:
            return self.derived("add", left, right)
        if left.is_known or right.is_known:
            bias, form = (left, right) if left.is_known else (right, left)
            return self._in_linear(form, lambda linear: self._with_bias(linear, bias))
        return self._sum([*_summands(left), *_summands(right)])

    def multiply(self, left: Form, right: Form) -> Form:
        """Return the element-wise product of two values."""
        if left.is_known and right.is_known:
            return self.derived("multiply", left, right)
        if left.is_known or right.is_known:
            factor, form = (left, right) if left.is_known else (right, left)
            return self.scale(form, number_of(factor))
        for one, other in ((left, right), (right, left)):
            if one.kind is Kind.ONES and one.operands == (other,):
                return other
        return self.make(Kind.PRODUCT, *sorted((left, right), key=_number))

    def scale(self, form: Form, factor: float) -> Form:
        """Return the product of a number and what is linear in LINEAR forms."""
        if form.kind is Kind.SUM:
            return self._sum([self.scale(each, factor) for each in form.operands])
        if form.kind is Kind.PRODUCT:
            first, second = form.operands
            if first.kind is not Kind.LINEAR:
                first, second = second, first
            return self.multiply(self.scale(first, factor), second)
        if form.kind is not Kind.LINEAR:
            raise UnrecognisedError("a product of a number and something that is not linear")
        scaled = [
            self.derived("scale", each, parameters=factor)
            for each in (*form.matrices, *form.biases)
        ]
        count = len(form.sources)
        return self.linear(form.sources, scaled[:count], scaled[count:])

    def divide(self, form: Form, divisor: float) -> Form:
        """Return the quotient of a form and a number."""
        if divisor == 0:
            raise UnrecognisedError("a quotient by 0")
        if form.kind is Kind.CLIPPED and form.detail == divisor:
            return self.activated(form.operands[0], "HardSigmoid", 1 / divisor)
        return self.scale(form, 1 / divisor)

    def clip(self, form: Form, limit: float) -> Form:
        """Return a form between 0 and `limit`."""
        if limit == 1:
            return self.activated(form, "HardSigmoid", 1.0)
        return self.make(Kind.CLIPPED, form, detail=limit)

    def cut(self, form: Form, function: str, parameters: Hashable) -> Form:
        """Return the columns of a form that a function in `weights.FUNCTIONS` cuts from a matrix.

        The last axis of the values must be that of the columns.
        """
        key = (form, function, parameters)
        found = self._cut.get(key)
        if found is None:
            found = self._cut[key] = self._cut_anew(form, function, parameters)
        return found

    def _cut_anew(self, form: Form, function: str, parameters: Hashable) -> Form:
        if form.kind is Kind.LINEAR:
            cut = [
                self.derived(function, each, parameters=parameters)
                for each in (*form.matrices, *form.biases)
            ]
            count = len(form.sources)
            return self.linear(form.sources, cut[:count], cut[count:])
        if form.kind not in _ELEMENT_WISE:
            raise UnrecognisedError(f"columns of a {form.kind.name}")
        operands = [self.cut(each, function, parameters) for each in form.operands]
        if form.kind is Kind.SUM:
            return self._sum(operands)
        if form.kind is Kind.PRODUCT:
            operands.sort(key=_number)
        return self.make(form.kind, *operands, detail=form.detail)

    def _in_linear(self, form: Form, change: Callable[[Form], Form]) -> Form:
        """Return `form` with its LINEAR summand changed."""
        parts = _summands(form)
        if not any(each.kind is Kind.LINEAR for each in parts):
            raise UnrecognisedError("a sum of something known and something that is not linear")
        return self._sum([change(each) if each.kind is Kind.LINEAR else each for each in parts])

    def _with_bias(self, linear: Form, bias: Form) -> Form:
        vector = self.derived("as_bias", bias, linear.matrices[0])
        return self.linear(linear.sources, linear.matrices, (*linear.biases, vector))

    def _sum(self, parts: Iterable[Form]) -> Form:
        """Return the sum of forms, in which LINEAR forms are merged."""
        others: list[Form] = []
        linear: Form | None = None
        for each in parts:
            if each.kind is not Kind.LINEAR:
                others.append(each)
            else:
                linear = each if linear is None else self._merged(linear, each)
        summands = others if linear is None else [linear, *others]
        if len(summands) == 1:
            return summands[0]
        return self.make(Kind.SUM, *sorted(summands, key=_number))

    def _merged(self, left: Form, right: Form) -> Form:
        """Return the sum of two LINEAR forms; the matrices of a source that both have are added."""
        matrices = dict(zip(left.sources, left.matrices, strict=True))
        for source, matrix in zip(right.sources, right.matrices, strict=True):
            known = matrices.get(source)
            matrices[source] = (
                matrix if known is None else self.derived("add_matrices", known, matrix)
            )
        sources = sorted(matrices, key=_number)
        return self.linear(
            sources, [matrices[each] for each in sources], [*left.biases, *right.biases]
        )


def number_of(form: Form) -> float:
    """Return the number that a constant with one element is; raise UnrecognisedError of others."""
    if form.kind is Kind.CONSTANT:
        array = array_of(form)
        if array.size == 1 and array.dtype.kind in "fi":
            return float(array.reshape(-1)[0])
    raise UnrecognisedError("a number that is not a constant of the loop")


def array_of(form: Form) -> np.ndarray:
    """Return the array of a CONSTANT form; raise UnrecognisedError of others."""
    if form.kind is not Kind.CONSTANT:
        raise UnrecognisedError("an operand that is not a constant of the loop")
    assert isinstance(form.detail, tuple)
    dtype, shape, data = form.detail
    return np.frombuffer(data, dtype).reshape(shape)


def _summands(form: Form) -> tuple[Form, ...]:
    return form.operands if form.kind is Kind.SUM else (form,)


def _number(form: Form) -> int:
    return form.number
