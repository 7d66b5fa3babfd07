"""Changes of element type: Cast, Bitcast, ToBool.

TF: tensorflow/core/kernels/{cast_op.cc,bitcast_op.cc}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.register_types import POD_TYPES

# Small integers: TensorFlow on x86 goes through a 32-bit integer and keeps its low bits.
_THROUGH_INT32 = frozenset(np.dtype(t) for t in (np.int8, np.uint8, np.int16, np.uint16))
_finfo: Callable[[np.dtype], Any] = ml_dtypes.finfo
_TRUNCATED = (DataType.FLOAT, DataType.DOUBLE, DataType.COMPLEX64, DataType.COMPLEX128)
_OBJECT_TYPES = (DataType.STRING, DataType.RESOURCE, DataType.VARIANT)


def cast(x: Any, *, SrcT: DataType, DstT: DataType, Truncate: bool) -> Any:  # noqa: N803
    """x in another element type; Truncate drops mantissa bits instead of rounding.

    A complex number loses its imaginary part. A float that the integer type cannot hold gives
    what an x86 conversion gives.
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
    """Clear the bits of float32 and float64 parts that the target type has no room for."""
    spare = _spare_bits(source, target)
    if spare <= 0:
        return x
    signed = np.int32 if x.dtype.name in ("float32", "complex64") else np.int64
    bits: np.ndarray = np.ascontiguousarray(x).view(signed)
    kept = (bits & signed(-(1 << spare))).view(x.dtype).reshape(x.shape)
    return np.where(np.isnan(x), x, kept)


def _spare_bits(source: DataType, target: DataType) -> int:
    """How many bits TensorFlow drops: of float64 for complex64 all digits, it counts none there."""
    if (source, target) == (DataType.DOUBLE, DataType.COMPLEX64):
        return 53
    if (source, target) != (DataType.COMPLEX128, DataType.COMPLEX64) and not target.is_floating:
        return 0
    # From these types it rounds to bfloat16 even so: it goes through float32.
    if source not in _TRUNCATED or (target is DataType.BFLOAT16 and source is not DataType.FLOAT):
        return 0
    return int(np.finfo(source.numpy).nmant - _finfo(target.numpy).nmant)


def bitcast(input: Any, *, type: DataType) -> Any:
    """The same bytes as another type; a size ratio adds or removes the last dimension."""
    array = np.ascontiguousarray(input).reshape(np.shape(input))
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
    # A dimension of size 0 elsewhere leaves nothing that `view` could take its size from.
    if not array.size:
        return np.empty(array.shape[:-1], target)
    return array.view(target).reshape(array.shape[:-1])


def _tf_name(dtype: np.dtype) -> str:
    from_name = {np.dtype(t.numpy): t.tf_name for t in POD_TYPES}
    return from_name.get(dtype, dtype.name)


def to_bool(input: Any) -> Any:
    """Whether a scalar is not zero, a string not empty, a tensor of other rank not empty."""
    if np.ndim(input):
        return np.bool_(np.size(input) > 0)
    return np.bool_(bool(np.asarray(input).item()))


KERNELS: tuple[KernelDef, ...] = (
    KernelDef("Cast", cast),
    KernelDef("Bitcast", bitcast),
    KernelDef("ToBool", to_bool),
)
