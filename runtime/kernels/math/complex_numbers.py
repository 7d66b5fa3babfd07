"""Kernels that make complex numbers, or return their parts, arguments and conjugates.

TF: tensorflow/core/kernels/cwise_op_{complex,real,imag,conj,arg,abs}.cc
"""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.register_types import COMPLEX_TYPES
from runtime.kernels.math.broadcasting import binary


def make_complex(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    """Complex: return real + i · imag."""
    shape = np.broadcast_shapes(np.shape(real), np.shape(imag))
    result = np.empty(shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    result.real = real
    result.imag = imag
    return result


def real(input: np.ndarray) -> np.ndarray:
    """Real: return the real part."""
    return input.real


def imag(input: np.ndarray) -> np.ndarray:
    """Imag: return the imaginary part."""
    return input.imag


def angle(input: np.ndarray) -> np.ndarray:
    """Angle: return the argument, in radians between −π and π."""
    return np.arctan2(input.imag, input.real)


PARTS: dict[str, Kernel] = {
    "Real": real,
    "Imag": imag,
    "Angle": angle,
    "ComplexAbs": np.absolute,
}
# (complex type, type of the real and imaginary part)
WIDTHS = ((DataType.COMPLEX64, DataType.FLOAT), (DataType.COMPLEX128, DataType.DOUBLE))

KERNELS: tuple[KernelDef, ...] = (
    *(
        KernelDef("Complex", binary(make_complex), {"T": (part,), "Tout": (whole,)})
        for whole, part in WIDTHS
    ),
    *(
        KernelDef(op, function, {"T": (whole,), "Tout": (part,)})
        for op, function in PARTS.items()
        for whole, part in WIDTHS
    ),
    KernelDef("Conj", np.conjugate, {"T": COMPLEX_TYPES}),
)
