"""Kernels that change the element type: Cast, Bitcast, ToBool.

TF: tensorflow/core/kernels/{cast_op.cc,bitcast_op.cc}
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import POD_TYPES
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue

# To these types TensorFlow on x86 converts a float by way of int32, whose low bits it keeps.
_THROUGH_INT32 = frozenset(np.dtype(t) for t in (np.int8, np.uint8, np.int16, np.uint16))
_finfo: Callable[[np.dtype], np.finfo] = ml_dtypes.finfo
_TRUNCATABLE_TYPES = (DataType.FLOAT, DataType.DOUBLE, DataType.COMPLEX64, DataType.COMPLEX128)
_OBJECT_TYPES = (DataType.STRING, DataType.RESOURCE, DataType.VARIANT)


def cast(x: TensorValue, *, SrcT: DataType, DstT: DataType, Truncate: bool) -> TensorValue:  # noqa: N803
    """Cast: return `x` converted to `DstT`; `Truncate` drops mantissa bits instead of rounding.

    A complex number loses its imaginary part if `DstT` is real. If a float is outside the range of
    an integer `DstT`, the result is what the x86 conversion instruction gives.
    """
    if SrcT == DstT:
        return x
    if SrcT in _OBJECT_TYPES or DstT in _OBJECT_TYPES:
        raise UnimplementedError(f"Cast {SrcT.tf_name} to {DstT.tf_name} is not supported")
    target = DstT.numpy
    x = np.asarray(x)
    if x.dtype.kind == "c" and target.kind != "c":
        x = x.real
    if Truncate:
        x = _drop_mantissa_bits(x, SrcT, DstT)
    if "int4" in x.dtype.name or (target in _THROUGH_INT32 and x.dtype.kind == "f"):
        x = x.astype(np.int32)
    return x.astype(target)


def _drop_mantissa_bits(x: np.ndarray, source: DataType, target: DataType) -> np.ndarray:
    """Return `x` with the low mantissa bits cleared that `target` cannot hold.

    The two parts of a complex number are treated alike; NaN is unchanged.
    """
    spare = _spare_bits(source, target)
    if spare <= 0:
        return x
    signed = np.int32 if x.dtype.name in ("float32", "complex64") else np.int64
    bits: np.ndarray = np.ascontiguousarray(x).view(signed)
    kept = (bits & signed(-(1 << spare))).view(x.dtype).reshape(x.shape)
    return np.where(np.isnan(x), x, kept)


def _spare_bits(source: DataType, target: DataType) -> int:
    """Return how many low mantissa bits TensorFlow clears before a truncating conversion.

    From float64 to complex64 it clears all 53 bits, as if complex64 had no mantissa.
    """
    if (source, target) == (DataType.DOUBLE, DataType.COMPLEX64):
        return 53
    if (source, target) != (DataType.COMPLEX128, DataType.COMPLEX64) and not target.is_floating:
        return 0
    # TensorFlow converts other types than float32 to bfloat16 by way of float32, which rounds.
    if source not in _TRUNCATABLE_TYPES or (
        target is DataType.BFLOAT16 and source is not DataType.FLOAT
    ):
        return 0
    return int(np.finfo(source.numpy).nmant - _finfo(target.numpy).nmant)


def bitcast(input: np.ndarray, *, type: DataType) -> np.ndarray:
    """Bitcast: return the bytes of `input` as elements of another dtype.

    If the new elements are smaller, a last dimension is added; if they are larger, it is dropped.
    """
    array: np.ndarray = np.ascontiguousarray(input).reshape(np.shape(input))
    source, target = array.dtype, type.numpy
    if source.itemsize == target.itemsize:
        return array.view(target)
    if source.itemsize > target.itemsize:
        ratio = source.itemsize // target.itemsize
        return array.reshape(*array.shape, 1).view(target).reshape(*array.shape, ratio)
    ratio = target.itemsize // source.itemsize
    if array.ndim == 0 or array.shape[-1] != ratio:
        raise InvalidArgumentError(
            f"Cannot bitcast from {_tf_name(source)} to {type.tf_name}: shape "
            f"{shape_text(array.shape)}"
        )
    # `view` cannot change the item size of an array that is empty in another dimension.
    if not array.size:
        return np.empty(array.shape[:-1], target)
    return array.view(target).reshape(array.shape[:-1])


def _tf_name(dtype: np.dtype) -> str:
    from_name = {np.dtype(t.numpy): t.tf_name for t in POD_TYPES}
    return from_name.get(dtype, dtype.name)


def to_bool(input: np.ndarray) -> np.bool_:
    """ToBool: return whether `input` counts as true.

    A scalar number counts as true if it is not zero. A scalar string, or a tensor of higher rank,
    counts as true if it is not empty.
    """
    if np.ndim(input):
        return np.bool_(np.size(input) > 0)
    return np.bool_(bool(np.asarray(input).item()))


KERNELS: tuple[KernelDef, ...] = (
    KernelDef("Cast", cast),
    KernelDef("Bitcast", bitcast),
    KernelDef("ToBool", to_bool),
)
