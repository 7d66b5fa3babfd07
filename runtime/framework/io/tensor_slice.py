"""Slices of tensors, as checkpoints and `shape_and_slice` inputs describe them.

TF: tensorflow/core/framework/tensor_slice.h (TensorSlice), util/saved_tensor_slice_util.h
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import protos as pb
from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.framework.shapes import shape_text

_FULL = -1  # the length of an extent that covers the whole dimension
_EXTENT = re.compile(r"(\d{1,18}),(\d{1,18})")


@dataclasses.dataclass(frozen=True, slots=True)
class TensorSlice:
    """A slice of a tensor: (start, length) for each dimension; length −1 is the whole dimension."""

    extents: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, text: str) -> TensorSlice:
        """Parse the text of a slice: `0,2:-` means rows 0 and 1 and all columns.

        The slice of a scalar is "". Raises InvalidArgumentError if the syntax is different or a
        length is 0.
        """
        return cls(tuple(_parse_extent(part, text) for part in text.split(":") if text))

    @classmethod
    def from_proto(cls, proto: pb.TensorSliceProto) -> TensorSlice:
        """Convert a proto to a slice.

        Raises InvalidArgumentError if a start or length is negative.
        """
        if any(extent.start < 0 or extent.length < 0 for extent in proto.extent):
            raise InvalidArgumentError("A slice has a negative start or length")
        return cls(
            tuple(
                (extent.start, extent.length) if extent.HasField("length") else (0, _FULL)
                for extent in proto.extent
            )
        )

    @classmethod
    def whole(cls, rank: int) -> TensorSlice:
        """Return the slice that covers a whole tensor of rank `rank`."""
        return cls(((0, _FULL),) * rank)

    def to_proto(self) -> pb.TensorSliceProto:
        """Convert the slice to a proto, as the index of a checkpoint stores it."""
        extent = pb.TensorSliceProto.Extent
        return pb.TensorSliceProto(
            extent=[
                extent() if length == _FULL else extent(start=start, length=length)
                for start, length in self.extents
            ]
        )

    def __str__(self) -> str:
        return ":".join(
            "-" if length == _FULL else f"{start},{length}" for start, length in self.extents
        )

    def is_full(self, shape: Sequence[int]) -> bool:
        """Return whether this slice covers a whole tensor of shape `shape`."""
        return all(
            length in (_FULL, size) for (_, length), size in zip(self.extents, shape, strict=True)
        )

    def bounds(self, shape: Sequence[int]) -> tuple[slice, ...]:
        """Convert the slice to numpy slices of a tensor of `shape`.

        Raises InternalError if the slice is out of bounds.
        """
        if len(self.extents) != len(shape):
            raise InternalError(f"Mismatching ranks: shape = {shape_text(shape)}, slice = {self}")
        bounds = []
        for dimension, ((start, length), size) in enumerate(zip(self.extents, shape, strict=True)):
            stop = size if length == _FULL else start + length
            if not 0 <= start <= stop <= size:
                raise InternalError(
                    f"Extent in dimension {dimension} out of bounds: "
                    f"shape = {shape_text(shape)}, slice = {self}"
                )
            bounds.append(slice(start, stop))
        return tuple(bounds)

    def overlap(
        self, target: Sequence[slice], shape: Sequence[int]
    ) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
        """Intersect this slice with `target`, both in a tensor of `shape`.

        Return the intersection twice, first relative to the start of `target`, then relative to the
        start of this slice; return None if it is empty.
        """
        own = self.bounds(shape)
        common = [
            slice(max(one.start, other.start), min(one.stop, other.stop))
            for one, other in zip(own, target, strict=True)
        ]
        if any(bound.start >= bound.stop for bound in common):
            return None
        return _relative(common, target), _relative(common, own)

    def shape_in(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of this slice of a tensor of `shape`."""
        return tuple(bound.stop - bound.start for bound in self.bounds(shape))


def _relative(bounds: Sequence[slice], origin: Sequence[slice]) -> tuple[slice, ...]:
    """Return `bounds` relative to the start of `origin`."""
    return tuple(
        slice(bound.start - first.start, bound.stop - first.start)
        for bound, first in zip(bounds, origin, strict=True)
    )


def _parse_extent(part: str, text: str) -> tuple[int, int]:
    if part == "-":
        return 0, _FULL
    match = _EXTENT.fullmatch(part)
    if match is None:
        raise InvalidArgumentError(
            f"Expected a pair of numbers or '-' but got '{part}': string = {text}"
        )
    start, length = int(match[1]), int(match[2])
    if length <= 0:
        raise InvalidArgumentError(
            f"Expected non-negative start and positive length but got "
            f"start = {start}, length = {length}: string = {text}"
        )
    return start, length


def parse_shape_and_slice(text: str) -> tuple[tuple[int, ...], TensorSlice]:
    """Parse a text such as `4 3 0,2:-` and return (shape of the whole tensor, slice).

    Raises InvalidArgumentError, with TensorFlow's text, if the syntax is wrong; InternalError if
    the slice is out of bounds. TF: checkpoint::ParseShapeAndSlice
    """
    *sizes, slice_text = text.split(" ")
    if not sizes:
        raise InvalidArgumentError(
            f"Need least two elements in shape_and_slice specification: {text}"
        )
    # Every number of at most 18 digits fits in 64 bits.
    if any(not size.isascii() or not size.isdigit() or len(size) > 18 for size in sizes):
        raise InvalidArgumentError(f"Non numerical dimension in shape_and_slice: {text}")
    shape = tuple(map(int, sizes))
    part = TensorSlice.parse(slice_text)
    part.bounds(shape)
    return shape, part
