"""Dimensions: sizes of tensors that are integers, or products of an integer and symbols.

A model is compiled once for all batch sizes, so a size may be unknown then. A symbol stands for
such a size; it is the size of one axis of one input of the cluster. What can't be expressed as an
integer times symbols (a sum of two symbols, for example) raises `InexpressibleError`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias


class InexpressibleError(Exception):
    """A size that is not an integer times symbols, or shapes that only a run can compare."""


@dataclasses.dataclass(frozen=True, slots=True)
class SymbolicSize:
    """`factor` times each of `symbols`: at least one, sorted, repeated for powers."""

    factor: int
    symbols: tuple[str, ...]

    def __str__(self) -> str:
        names = "*".join(self.symbols)
        return names if self.factor == 1 else f"{self.factor}*{names}"


Dimension: TypeAlias = int | SymbolicSize
Shape: TypeAlias = tuple[Dimension, ...]


def symbol(name: str) -> SymbolicSize:
    """Return the size that the symbol `name` stands for."""
    return SymbolicSize(1, (name,))


def product(sizes: Iterable[Dimension]) -> Dimension:
    """Return the product of sizes, which is 1 if there are none."""
    factor = 1
    symbols: list[str] = []
    for size in sizes:
        if isinstance(size, SymbolicSize):
            factor *= size.factor
            symbols += size.symbols
        else:
            factor *= size
    return SymbolicSize(factor, tuple(sorted(symbols))) if symbols and factor else factor


def quotient(size: Dimension, divisor: Dimension) -> Dimension:
    """Return `size / divisor`; raise InexpressibleError unless it is exact for all symbols."""
    factor, symbols = _parts(size)
    other_factor, other_symbols = _parts(divisor)
    remaining = list(symbols)
    for each in other_symbols:
        if each not in remaining:
            raise InexpressibleError(f"{size} / {divisor}")
        remaining.remove(each)
    if other_factor == 0 or factor % other_factor:
        raise InexpressibleError(f"{size} / {divisor}")
    return product([factor // other_factor, *map(symbol, remaining)])


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape of an element-wise operation on tensors of `shapes`.

    Raises InexpressibleError if two sizes differ and neither is 1, because only a run can tell
    whether a symbol stands for 1.
    """
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(_broadcast_size(sizes) for sizes in zip(*padded, strict=True))


def _broadcast_size(sizes: Sequence[Dimension]) -> Dimension:
    wanted: Dimension = 1
    for size in sizes:
        if size == 1 or size == wanted:
            continue
        if wanted != 1:
            raise InexpressibleError(f"{wanted} and {size} in one operation")
        wanted = size
    return wanted


def resolve_reshape(shape: Shape, wanted: Sequence[Dimension]) -> Shape:
    """Return `wanted` with its −1, if there is one, replaced by what is left of `shape`.

    Raises InexpressibleError if the numbers of elements differ or can't be compared.
    """
    if -1 not in wanted:
        if product(wanted) != product(shape):
            raise InexpressibleError(f"{product(shape)} elements in {wanted}")
        return tuple(wanted)
    known = product(size for size in wanted if size != -1)
    rest = quotient(product(shape), known)
    return tuple(rest if size == -1 else size for size in wanted)


def is_static(shape: Iterable[Dimension]) -> bool:
    """Return whether all sizes are integers."""
    return all(isinstance(size, int) for size in shape)


def static(size: Dimension) -> int:
    """Return a size that must be an integer; raise InexpressibleError if it has symbols."""
    if isinstance(size, SymbolicSize):
        raise InexpressibleError(f"{size} is known at a run only")
    return size


def static_shape(shape: Iterable[Dimension]) -> tuple[int, ...]:
    """Return a shape whose sizes must all be integers; raise InexpressibleError otherwise."""
    return tuple(static(size) for size in shape)


def evaluate(size: Dimension, sizes: dict[str, int]) -> int:
    """Return the integer that a size is if the symbols stand for `sizes`."""
    factor, symbols = _parts(size)
    return factor * math.prod(sizes[each] for each in symbols)


def _parts(size: Dimension) -> tuple[int, tuple[str, ...]]:
    if isinstance(size, SymbolicSize):
        return size.factor, size.symbols
    return size, ()
