"""TensorShape: the static, possibly partial, shape of a tensor.

TF: tensorflow/python/framework/tensor_shape.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import SupportsIndex, TypeAlias, overload

import protos as pb
from runtime.framework.partial_shapes import is_compatible, is_fully_defined
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_codec import shape_from_proto, shape_to_proto

# A shape argument: sizes (None or −1 if unknown), one size, a TensorShapeProto, a TensorShape, or
# None if the rank is unknown.
ShapeLike: TypeAlias = (
    "TensorShape | pb.TensorShapeProto | SupportsIndex | Sequence[SupportsIndex | None] | None"
)


class TensorShape:
    """The sizes of the dimensions; some sizes, or the rank, may be unknown.

    A TensorShape is equal to lists and tuples of the same sizes. It prints like a tuple: `(None,
    3)`, or `<unknown>` if the rank is unknown.
    """

    __slots__ = ("_sizes",)

    def __init__(self, sizes: ShapeLike = None) -> None:
        """Take sizes (None or −1 if unknown), one size, a TensorShapeProto, a TensorShape, or None.

        Raises TypeError for anything else, ValueError if a size is negative.
        """
        self._sizes = _read_sizes(sizes)

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """The sizes, with −1 for an unknown size; None if the rank is unknown."""
        return self._sizes

    @property
    def rank(self) -> int | None:
        """The number of dimensions, or None if it is unknown."""
        return None if self._sizes is None else len(self._sizes)

    ndims = rank

    def as_list(self) -> list[int | None]:
        """Return the sizes, with None for an unknown size.

        Raises ValueError if the rank is unknown.
        """
        if self._sizes is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return [None if size < 0 else size for size in self._sizes]

    def as_proto(self) -> pb.TensorShapeProto:
        """Return the TensorShapeProto."""
        return shape_to_proto(self._sizes)

    def is_fully_defined(self) -> bool:
        """Return whether the rank and all sizes are known."""
        return is_fully_defined(self._sizes)

    def is_compatible_with(self, other: ShapeLike) -> bool:
        """Return whether a tensor could have both this shape and `other`."""
        return is_compatible(self._sizes, _read_sizes(other))

    def num_elements(self) -> int | None:
        """Return the product of the sizes, or None if one of them is unknown."""
        if not is_fully_defined(self._sizes):
            return None
        product = 1
        for size in self._sizes:
            product *= size
        return product

    def merge_with(self, other: ShapeLike) -> TensorShape:
        """Return the shape that has what is known from this shape and from `other`.

        Raises ValueError if they contradict.
        """
        theirs = _read_sizes(other)
        if self._sizes is None or theirs is None:
            return TensorShape(theirs if self._sizes is None else self._sizes)
        if len(self._sizes) != len(theirs):
            raise ValueError(
                f"Shapes must be equal rank, but are {len(self._sizes)} and {len(theirs)}"
            )
        for index, (mine, other_size) in enumerate(zip(self._sizes, theirs, strict=True)):
            if mine != other_size and mine >= 0 and other_size >= 0:
                raise ValueError(
                    f"Dimension {index} in both shapes must be equal, but are {mine} and "
                    f"{other_size}. Shapes are {shape_text(self._sizes)} and {shape_text(theirs)}."
                )
        return TensorShape([max(a, b) for a, b in zip(self._sizes, theirs, strict=True)])

    def __len__(self) -> int:
        if self._sizes is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._sizes)

    def __iter__(self) -> Iterator[int | None]:
        return iter(self.as_list())

    @overload
    def __getitem__(self, key: SupportsIndex) -> int | None: ...

    @overload
    def __getitem__(self, key: slice) -> TensorShape: ...

    def __getitem__(self, key: SupportsIndex | slice) -> TensorShape | int | None:
        if isinstance(key, slice):
            return TensorShape(None if self._sizes is None else self.as_list()[key])
        return None if self._sizes is None else self.as_list()[key]

    def __bool__(self) -> bool:
        return self._sizes is not None

    def __eq__(self, other: object) -> bool:
        try:
            return self._sizes == _read_sizes(other)
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._sizes)

    def __str__(self) -> str:
        return "<unknown>" if self._sizes is None else str(tuple(self.as_list()))

    def __repr__(self) -> str:
        return f"TensorShape({None if self._sizes is None else self.as_list()})"


def _read_sizes(shape: object) -> tuple[int, ...] | None:
    if shape is None:
        return None
    if isinstance(shape, TensorShape):
        return shape.sizes
    if isinstance(shape, pb.TensorShapeProto):
        return shape_from_proto(shape)
    if hasattr(shape, "__index__"):
        shape = (shape,)
    if isinstance(shape, str | bytes) or not isinstance(shape, Sequence):
        raise TypeError(
            f"A shape is a dimension, or a sequence of dimensions such as [1, 10, None], got "
            f"{shape!r}"
        )
    return tuple(_read_size(size) for size in shape)


def _read_size(size: object) -> int:
    if size is None:
        return -1
    number = int(size.__index__()) if hasattr(size, "__index__") else None
    if number is None:
        raise TypeError(f"A dimension is an integer or None, got {size!r}")
    if number < -1:
        raise ValueError(f"Dimension {number} must be >= 0")
    return number
