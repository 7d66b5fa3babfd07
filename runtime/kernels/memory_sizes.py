"""Sizes in bytes from which the memory needs of kernels are computed.

The functions read shapes, element types and small tensors; none allocates memory that grows with
its arguments. They take what a step may pass to a kernel, also what the kernel refuses.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.intra_op_pool import thread_width
from runtime.framework.memory_account import distinct
from runtime.framework.resources.tensor_list import TensorList
from runtime.framework.resources.variable import Variable
from runtime.framework.string_tensor import string_blocks
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.math.element_blocks import THREADED_BLOCK

POINTER = 8
# sys.getsizeof(b"") is 33; the allocator rounds up to 16.
STRING = 48
# A view is an object of its own: sys.getsizeof of an array of rank 1 to 4 that owns no memory.
VIEW = 176
# A Python integer or float, and its place in a list.
NUMBER = 40
# The working memory of `runtime.framework.philox` for one word of 32 bits.
PHILOX_WORD = 72


def volume(sizes: Iterable[int]) -> int:
    """Return the number of elements of a shape; 0 if a size is negative.

    Raises InvalidArgumentError if it exceeds int64: the kernel then raises its own error.
    """
    found = [int(size) for size in sizes]
    count = 0 if min(found, default=0) < 0 else math.prod(found)
    if count >= 1 << 63:
        raise InvalidArgumentError(f"Shape {found} has more than 2^63 - 1 elements")
    return count


def dense(sizes: Iterable[int], dtype: np.dtype | type | int) -> int:
    """Return the bytes of an array; `dtype` is an element type, or the bytes of an element."""
    width = dtype if isinstance(dtype, int) else np.dtype(dtype).itemsize
    return volume(sizes) * width


def numbers_in(tensor: TensorValue, limit: int = 256) -> list[int]:
    """Return the integers of a small tensor, such as a shape; [] if there are more than `limit`."""
    array = np.asarray(tensor)
    if array.size > limit or array.dtype.hasobject:
        return []
    return [int(each) for each in array.ravel().tolist()]


def number(tensor: TensorValue) -> int:
    """Return the first integer of a tensor, or 0 if there is none."""
    return next(iter(numbers_in(tensor, 1)), 0)


def itemsize(value: TensorValue) -> int:
    """Return the bytes of an element of a tensor (a string is a pointer)."""
    return value.dtype.itemsize if isinstance(value, np.ndarray | np.generic) else POINTER


def elements(*values: TensorValue) -> int:
    """Return how many elements tensors have together."""
    return sum(math.prod(shape_of(each)) for each in values)


def shape_of(value: TensorValue) -> tuple[int, ...]:
    """Return the shape of a tensor or of a variable's value; () for anything else."""
    if isinstance(value, np.ndarray | np.generic):
        return value.shape
    return value.shape or () if isinstance(value, Variable) else ()


def size_of(*values: TensorValue) -> int:
    """Return the bytes of tensors, strings included, as if each had memory of its own.

    An array with strides of 0 counts with all its elements. What a list or a resource holds is not
    new and counts nothing, except that a variable itself (a reference input) counts as its value.
    """
    return sum(map(_size_of, values))


def _size_of(value: TensorValue) -> int:
    if isinstance(value, np.ndarray):
        own = value.size * value.dtype.itemsize
        return own + text_in(value) + STRING * value.size if value.dtype.hasobject else own
    if isinstance(value, np.generic):
        return value.nbytes
    if isinstance(value, bytes):
        return STRING + len(value)
    return dense(value.shape or (), value.dtype.numpy) if isinstance(value, Variable) else 0


def text_in(value: TensorValue) -> int:
    """Return the total length of the strings of a tensor."""
    if isinstance(value, bytes):
        return len(value)
    if not isinstance(value, np.ndarray) or not value.dtype.hasobject:
        return 0
    part, times = distinct(value)
    items = itertools.chain.from_iterable(string_blocks(part))
    return times * sum(len(each) for each in items if isinstance(each, bytes))


def longest_in(value: TensorValue) -> int:
    """Return the length of the longest string of a tensor."""
    if isinstance(value, bytes):
        return len(value)
    if not isinstance(value, np.ndarray) or not value.dtype.hasobject:
        return 0
    blocks = string_blocks(distinct(value)[0])
    return max(
        (len(each) for block in blocks for each in block if isinstance(each, bytes)), default=0
    )


def nonzero_in(value: TensorValue) -> int:
    """Return how many elements of a tensor are not zero."""
    if not isinstance(value, np.ndarray):
        return 1
    part, times = distinct(value)
    return times * int(np.count_nonzero(part))


def largest_in(*values: TensorValue) -> int:
    """Return the largest integer of tensors; 0 if they have none."""
    found = 0
    for each in values:
        array = distinct(np.asarray(each))[0]
        if array.size and not array.dtype.hasobject:
            found = max(found, int(array.max()))
    return found


def total_in(value: TensorValue) -> int:
    """Return the sum of the positive integers of a tensor; 0 if there is no tensor."""
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        return 0
    part, times = distinct(value)
    return times * int(part.sum(where=part > 0, dtype=np.float64))


def broadcast_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which shapes broadcast; (0,) if they don't."""
    sizes: list[int] = []
    for places in _aligned(shapes):
        wide = {size for size in places if size != 1}
        if len(wide) > 1:
            return (0,)
        sizes.append(wide.pop() if wide else 1)
    return tuple(sizes[::-1])


def _aligned(shapes: Sequence[Sequence[int]]) -> Iterable[list[int]]:
    rank = max(map(len, shapes), default=0)
    for place in range(1, rank + 1):
        yield [shape[-place] for shape in shapes if len(shape) >= place]


def broadcast_elements(*values: TensorValue) -> int:
    """Return the number of elements of the shape to which tensors broadcast."""
    return math.prod(broadcast_shape(*map(shape_of, values)))


def broadcast_text(*values: TensorValue) -> int:
    """Return the bytes of the strings that result from joining tensors broadcast to one shape."""
    count = broadcast_elements(*values)
    joined = sum(text_in(each) * count // max(elements(each), 1) for each in values)
    return joined + (STRING + 3 * POINTER) * count


def in_blocks(count: int, width: int, arrays: int) -> int:
    """Return the bytes of `arrays` temporaries of a kernel that works through `count` elements.

    It works in blocks of at most THREADED_BLOCK elements, one on each thread.
    """
    return min(count, THREADED_BLOCK * max(thread_width(), 1)) * width * arrays


def listed_items(handle: TensorValue) -> tuple[int, tuple[int, ...], int]:
    """Return (the length of a tensor list, the shape of its elements, bytes of an element).

    The shape is that of the first element which is set, else the list's where it is known.
    """
    found = handle.item() if isinstance(handle, np.ndarray) and handle.size == 1 else handle
    if not isinstance(found, TensorList):
        return 0, (), 0
    shape = next((np.shape(each) for each in found.items() if each is not None), None)  # type: ignore[call-overload] # elements are arrays or objects of rank 0
    known = shape if shape is not None else found.element_shape or ()
    return len(found), known, found.element_dtype.numpy.itemsize
