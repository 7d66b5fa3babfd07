"""The memory that element-wise kernels need: their inputs broadcast to one shape."""

from __future__ import annotations

import math

import numpy as np

from runtime.framework.tensor_value import TensorValue

# A result, and the same again for an operand that is converted or for a result that is rounded.
_COPIES = 2


# A bound on the memory of two operands is at most this many bytes for each product of two elements.
MOST_BYTES_A_PRODUCT = _COPIES * 16


def broadcast_need(*inputs: TensorValue) -> int:
    """Return a bound in bytes of the memory of an element-wise kernel on `inputs`.

    No element of the output may be wider than the widest one of the inputs. Inputs that do not
    broadcast need nothing, because the kernel raises before it allocates. Step plans recognise
    this function and call it only if the product of the sizes of the inputs is large.
    """
    arrays = [np.asarray(each) for each in inputs]
    largest = max(arrays, key=_rank_and_size)
    shape = largest.shape
    if not all(_fits(each.shape, shape) for each in arrays):
        try:
            shape = np.broadcast_shapes(*(each.shape for each in arrays))
        except ValueError:
            return 0
    return _COPIES * math.prod(shape) * max(each.itemsize for each in arrays)


def _rank_and_size(array: np.ndarray) -> tuple[int, int]:
    return array.ndim, array.size


def _fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Return whether `shape` is the end of `whole`, the most frequent kind of broadcasting."""
    return not shape or whole[-len(shape) :] == shape
