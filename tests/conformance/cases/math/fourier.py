"""Fourier transforms: ranks, both widths, cropping lengths, lengths that do not fit."""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

SUFFIXES = {"": 1, "2D": 2, "3D": 3}
WIDTHS = (
    (np.float32, DataType.FLOAT, np.complex64, DataType.COMPLEX64),
    (np.float64, DataType.DOUBLE, np.complex128, DataType.COMPLEX128),
)


def spectrum(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    values = (np.arange(int(np.prod(shape))) * 7 % 11).reshape(shape)
    return (values + 1j * (values % 3)).astype(dtype)


def signal(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    return (np.arange(int(np.prod(shape))) * 7 % 11).reshape(shape).astype(dtype)


def lengths(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


CASES: tuple[Case, ...] = (
    *(
        case(f"{op}{suffix}", spectrum(shape, whole))
        for op in ("FFT", "IFFT")
        for suffix, rank in SUFFIXES.items()
        for shape in ((2, 3, 4)[-rank:], (2, 2, 3, 5))
        for _, _, whole, _ in WIDTHS
    ),
    *(
        case(f"RFFT{suffix}", signal((2, 4, 6, 5), real), lengths(*size), Tcomplex=whole_type)
        for suffix, rank in SUFFIXES.items()
        for size in ((4, 6, 5)[-rank:], (3, 5, 4)[-rank:], (1, 1, 1)[-rank:])
        for real, _, _, whole_type in WIDTHS
    ),
    *(
        case(f"IRFFT{suffix}", spectrum((2, 4, 6, 5), whole), lengths(*size), Treal=real_type)
        for suffix, rank in SUFFIXES.items()
        for size in ((4, 6, 8)[-rank:], (3, 5, 9)[-rank:], (2, 2, 3)[-rank:])
        for _, real_type, whole, _ in WIDTHS
    ),
    *(
        case(f"{op}{suffix}", spectrum((5,) * (rank - 1), np.complex64), message=True)
        for op in ("FFT", "IFFT")
        for suffix, rank in SUFFIXES.items()
    ),
    *(case(op, np.zeros((2, 0), np.complex64)) for op in ("FFT", "IFFT")),
    *(
        case("RFFT", signal((5,), np.float32), lengths(*size), message=True)
        for size in ((8,), (-1,), (4, 4))
    ),
    case("RFFT", signal((5,), np.float32), np.int32(5), message=True),
    case("RFFT2D", signal((5,), np.float32), lengths(2, 2), message=True),
    case("RFFT", np.zeros((0, 4), np.float32), lengths(4)),
    case("IRFFT", spectrum((3,), np.complex64), lengths(8), message=True),
    case("IRFFT2D", spectrum((2, 2), np.complex64), lengths(3, 3), message=True),
    case("RFFT", np.ones(2), lengths(2), Tcomplex=DataType.COMPLEX64),
)
