"""Kernels that transpose, reverse and roll tensors, or invert permutations.

TF: tensorflow/core/kernels/{transpose_op,reverse_op,roll_op,reverse_sequence_op}.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox


def transpose(value: TensorValue, perm: np.ndarray) -> TensorValue:
    """Transpose: return a view of `value` with the dimensions in the order `perm`."""
    array = box(value)
    ranks = array.ndim
    if perm.ndim != 1:
        raise InvalidArgumentError(f"perm must be rank 1, got shape {shape_text(perm.shape)}")
    if perm.size != ranks:
        raise InvalidArgumentError(
            f"transpose expects a vector of size {ranks}. "
            f"But input(1) is a vector of size {perm.size}"
        )
    whole = perm.astype(np.int32)  # TensorFlow drops the upper 32 bits
    order = [dim + ranks if dim < 0 else dim for dim in whole.tolist()]
    for dim in order:
        if not 0 <= dim < ranks:
            raise InvalidArgumentError(f"{dim} is out of range [0 .. {ranks})")
    for dim in range(ranks):
        if dim not in order:
            given = ",".join(map(str, perm.tolist()))
            raise InvalidArgumentError(f"{dim} is missing from {{{given}}}.")
    return unbox(array.transpose(order))


def conjugate_transpose(value: TensorValue, perm: np.ndarray) -> TensorValue:
    """ConjugateTranspose: return the complex conjugate of the transposed `value`."""
    result = transpose(value, perm)
    if isinstance(result, np.ndarray) and result.dtype.kind == "c":
        return np.conj(result)
    return result


def invert_permutation(permutation: np.ndarray) -> np.ndarray:
    """InvertPermutation: return the y for which y[permutation[i]] = i."""
    if permutation.ndim != 1:
        raise InvalidArgumentError("invert_permutation expects a 1D vector.")
    count = permutation.size
    outside = (permutation < 0) | (permutation >= count)
    if outside.any():
        raise InvalidArgumentError(f"{permutation[outside][0]} is not between 0 and {count}")
    result = np.full(count, -1, permutation.dtype)
    result[permutation] = np.arange(count, dtype=permutation.dtype)
    if count and result.min() < 0:
        is_first = np.zeros(count, bool)
        is_first[np.unique(permutation, return_index=True)[1]] = True
        raise InvalidArgumentError(f"{permutation[~is_first][0]} is duplicated in the input.")
    return result


def reverse_v2(value: TensorValue, axis: np.ndarray) -> TensorValue:
    """ReverseV2: reverse the order of the elements along each dimension in `axis`."""
    array = box(value)
    if not array.ndim or not array.size:
        return value
    if axis.ndim != 1:
        raise InvalidArgumentError(f"'dims' must be 1-dimension, not {axis.ndim}")
    ranks = array.ndim
    seen: set[int] = set()
    for position, given in enumerate(axis[: ranks + 1].tolist()):  # one more must be wrong
        dim = given + ranks if given < 0 else given
        if not 0 <= dim < ranks:
            raise InvalidArgumentError(
                f"'axis'[{position}] = {given} is out of valid range [0, {ranks - 1}"
            )
        if dim in seen:
            raise InvalidArgumentError(f"axis {dim} specified more than once.")
        seen.add(dim)
    return unbox(np.flip(array, tuple(seen))) if seen else value


def reverse(value: TensorValue, dims: np.ndarray) -> TensorValue:
    """Reverse: reverse the order of the elements along each dimension d if `dims[d]` is true."""
    array = box(value)
    if not array.ndim:
        return value
    if dims.ndim != 1:
        raise InvalidArgumentError(f"'dims' must be 1-dimension, not {dims.ndim}")
    if array.ndim != dims.size:
        raise InvalidArgumentError(
            "'dims' must have the same number of values as 'input' has dimensions. "
            f"'input' has {array.ndim}'dims' has {dims.size} values"
        )
    if not len(array):
        raise InvalidArgumentError("Invalid input first dimension. Found 0.")
    return unbox(np.flip(array, tuple(np.flatnonzero(dims))))


def reverse_sequence(
    value: np.ndarray, seq_lengths: np.ndarray, *, seq_dim: int, batch_dim: int
) -> np.ndarray:
    """ReverseSequence: reverse the first seq_lengths[i] positions of batch entry i.

    The positions lie along dimension `seq_dim`, the batch entries along `batch_dim`.
    """
    _check_sequences(value, seq_lengths, seq_dim, batch_dim)
    steps = np.arange(value.shape[seq_dim])
    lengths = seq_lengths[:, None]
    order = np.where(steps < lengths, lengths - 1 - steps, steps)  # [batch, steps]
    if batch_dim > seq_dim:
        order = order.T
    sizes = [1] * value.ndim
    sizes[batch_dim], sizes[seq_dim] = len(seq_lengths), len(steps)
    return np.take_along_axis(value, order.reshape(sizes), seq_dim)


def _check_sequences(
    value: np.ndarray, seq_lengths: np.ndarray, seq_dim: int, batch_dim: int
) -> None:
    if seq_lengths.ndim != 1:
        raise InvalidArgumentError(f"seq_lengths must be 1-dim, not {seq_lengths.ndim}")
    if batch_dim == seq_dim:
        raise InvalidArgumentError(f"batch_dim == seq_dim == {seq_dim}")
    for name, dim in (("seq_dim", seq_dim), ("batch_dim", batch_dim)):
        if not 0 <= dim < value.ndim:
            raise InvalidArgumentError(f"{name} must be < input rank ( {dim} vs. {value.ndim})")
    if len(seq_lengths) != value.shape[batch_dim]:
        raise InvalidArgumentError(
            f"Length of seq_lengths != input.dims({batch_dim}), "
            f"({len(seq_lengths)} vs. {value.shape[batch_dim]})"
        )
    wrong = (seq_lengths < 0) | (seq_lengths > value.shape[seq_dim])
    if wrong.any():
        index = int(wrong.argmax())
        limit = "< 0" if seq_lengths[index] < 0 else f"> input.dims({seq_dim})"
        raise InvalidArgumentError(f"seq_lens({index}) {limit}")


def roll(value: np.ndarray, shift: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Roll: move the elements by `shift` along `axis`.

    Elements that leave at the end enter again at the start.
    """
    if value.ndim < 1:
        raise InvalidArgumentError("input must be 1-D or higher")
    for name, given in (("shift", shift), ("axis", axis)):
        if given.ndim > 1:
            raise InvalidArgumentError(
                f"{name} must be a scalar or a 1-D vector. Found: {shape_text(given.shape)}"
            )
    if shift.shape != axis.shape:
        raise InvalidArgumentError("shift and axis must have the same size")
    dims = np.atleast_1d(axis).tolist()
    for dim in dims:
        if not -value.ndim <= dim < value.ndim:
            raise InvalidArgumentError(f"axis {dim} is out of range")
    return np.roll(value, np.atleast_1d(shift).tolist(), dims)


KERNELS = (
    KernelDef("ConjugateTranspose", conjugate_transpose),
    KernelDef("InvertPermutation", invert_permutation),
    KernelDef("Reverse", reverse),
    KernelDef("ReverseSequence", reverse_sequence),
    KernelDef("ReverseV2", reverse_v2),
    KernelDef("Roll", roll),
    KernelDef("Transpose", transpose),
)
