"""Xla ops that return their inputs, call functions with them, or change bits of each number.

TF: tensorflow/compiler/tf2xla/kernels/xla_broadcast_helper_op.cc, xla_reduce_precision_op.cc,
sharding_op.cc, replica_id_op.cc, optimization_barrier_op.cc
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.array.identity import identity, identity_n
from runtime.kernels.control.control_flow import if_op, while_op
from runtime.kernels.xla.attributes import TYPES


def xla_broadcast_helper(
    lhs: np.ndarray, rhs: np.ndarray, broadcast_dims: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """XlaBroadcastHelper: give both tensors one rank.

    Dimension k of the tensor of lower rank becomes dimension `broadcast_dims[k]`; the new ones have
    size 1. Without `broadcast_dims`, tensors of one rank and scalars stay.
    """
    lhs, rhs = np.asarray(lhs), np.asarray(rhs)
    if np.ndim(broadcast_dims) != 1:
        raise InvalidArgumentError(
            f"broadcast_dims must be a vector, got shape {shape_text(np.shape(broadcast_dims))}"
        )
    dims = np.asarray(broadcast_dims).tolist()
    shapes = f"argument shapes: {shape_text(lhs.shape)} and {shape_text(rhs.shape)}"
    if not dims:
        if lhs.ndim and rhs.ndim and lhs.ndim != rhs.ndim:
            raise InvalidArgumentError(
                "If broadcast_dims is empty, both arguments must have equal rank; argument "
                "shapes, or at least one argument must be a scalar: "
                f"{shape_text(lhs.shape)} and {shape_text(rhs.shape)}"
            )
        return lhs, rhs
    if lhs.ndim <= rhs.ndim:
        return _expanded(lhs, rhs.ndim, dims, shapes), rhs
    return lhs, _expanded(rhs, lhs.ndim, dims, shapes)


def _expanded(array: np.ndarray, rank: int, dims: list[int], shapes: str) -> np.ndarray:
    given = f"broadcast_dims: {shape_text(dims)}"
    if len(dims) != array.ndim:
        raise InvalidArgumentError(
            f"broadcast_dims must have size equal to the smaller argument rank; {given}; {shapes}"
        )
    shape = [1] * rank
    for number, (dim, size) in enumerate(zip(dims, array.shape, strict=True)):
        if not 0 <= dim < rank:
            raise InvalidArgumentError(f"Invalid broadcast dimension ({dim}); {given}; {shapes}")
        if number and dim <= dims[number - 1]:
            raise InvalidArgumentError(
                f"Duplicate or nonmonotonic dimension in broadcast_dims; {given}"
            )
        shape[dim] = size
    return array.reshape(shape)


def xla_reduce_precision(
    operand: np.ndarray, *, exponent_bits: int, mantissa_bits: int
) -> np.ndarray:
    """XlaReducePrecision: round to a type of fewer bits, half to even, and back.

    What is too large becomes infinite; what is no normal number of that type becomes 0.
    """
    array = np.asarray(operand)
    if exponent_bits < 1 or mantissa_bits < 0:
        raise InvalidArgumentError(
            f"Need at least 1 exponent bit and 0 mantissa bits, got {exponent_bits} and "
            f"{mantissa_bits}"
        )
    own = ml_dtypes.finfo(array.dtype)  # type: ignore[no-untyped-call] # it has no types
    unsigned = np.dtype(f"u{array.dtype.itemsize}")
    sign = unsigned.type(1 << (own.bits - 1))
    bits = np.ascontiguousarray(array).view(unsigned).reshape(array.shape)
    size = bits & ~sign
    infinity = np.asarray(np.inf, array.dtype).view(unsigned)
    is_nan = size > infinity
    dropped = own.nmant - mantissa_bits
    if dropped > 0:
        odd = (size >> unsigned.type(dropped)) & unsigned.type(1)
        rounded = size + odd + unsigned.type((1 << (dropped - 1)) - 1)
        size = rounded & unsigned.type(~((1 << dropped) - 1) & (int(sign) - 1))
    if exponent_bits < own.nexp:
        bias, least = (1 << (own.nexp - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = size >> unsigned.type(own.nmant)
        size = np.where(exponent > bias + least, infinity, size)
        size = np.where(exponent <= bias - least, unsigned.type(0), size)
    result = (size | (bits & sign)).astype(unsigned).view(array.dtype)
    return np.where(is_nan, array, result)


def xla_spmd_shard_to_full_shape(
    input: np.ndarray,  # the op's name
    *,
    full_shape: tuple[int, ...],
) -> np.ndarray:
    """XlaSpmdShardToFullShape: return the input, the only shard, which must have `full_shape`."""
    if np.shape(input) != tuple(full_shape):
        raise InternalError(
            f"A shard of shape {shape_text(np.shape(input))} is not the full shape "
            f"{shape_text(full_shape)}, and there is no other"
        )
    return input


def xla_replica_id() -> np.ndarray:
    """XlaReplicaId: 0, because each step runs once."""
    return np.asarray(np.int32(0))


KERNELS = (
    KernelDef("XlaBroadcastHelper", xla_broadcast_helper, {"T": TYPES}),
    KernelDef("XlaIf", if_op),
    KernelDef("XlaOptimizationBarrier", identity_n),
    KernelDef("XlaReducePrecision", xla_reduce_precision),
    KernelDef("XlaReplicaId", xla_replica_id),
    KernelDef("XlaSharding", identity, {"T": TYPES}),
    KernelDef("XlaSpmdShardToFullShape", xla_spmd_shard_to_full_shape, {"T": TYPES}),
    KernelDef("XlaWhile", while_op),
)
