"""Conversion of dimension indices and per-dimension values between data formats.

TF: tensorflow/core/kernels/data_format_ops.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text

SPATIAL = "DHW"  # the dimensions that are neither batch nor channels


def _check_formats(src_format: str, dst_format: str) -> None:
    for name, title, given in (
        ("src_format", "Source", src_format),
        ("dst_format", "Destination", dst_format),
    ):
        if len(given) not in (4, 5):
            raise InvalidArgumentError(
                f"{title} format must be of length 4 or 5, received {name} = {given}"
            )
    if sorted(src_format) != sorted(dst_format) or len(set(src_format)) != len(src_format):
        raise InvalidArgumentError(
            "Destination and source format must determine a permutation, "
            f"got {src_format} and {dst_format}"
        )


def data_format_dim_map(x: np.ndarray, *, src_format: str, dst_format: str) -> np.ndarray:
    """DataFormatDimMap: convert dimension indices in `src_format` to indices in `dst_format`."""
    _check_formats(src_format, dst_format)
    places = np.array([dst_format.index(letter) for letter in src_format], x.dtype)
    return places[x % len(src_format)]


def data_format_vec_permute(x: np.ndarray, *, src_format: str, dst_format: str) -> np.ndarray:
    """DataFormatVecPermute: reorder `x` from `src_format` to `dst_format`.

    `x` has one row for each dimension, or for each spatial dimension only.
    """
    _check_formats(src_format, dst_format)
    _check_rows(x, len(src_format))
    if len(x) < len(src_format):
        src_format = "".join(letter for letter in src_format if letter in SPATIAL)
        dst_format = "".join(letter for letter in dst_format if letter in SPATIAL)
        if len(src_format) != len(x):
            letters = "H and W" if len(x) == 2 else "D, H and W"
            raise InvalidArgumentError(f"Format specifier must contain {letters} for 2D case")
    return np.asarray(x[[src_format.index(letter) for letter in dst_format]])


def _check_rows(x: np.ndarray, full: int) -> None:
    shape = np.shape(x)
    if len(shape) not in (1, 2):
        raise InvalidArgumentError(
            f"input must be a vector or 2D tensor, but got shape {shape_text(shape)}"
        )
    if shape[0] not in (full - 2, full):
        what = "1D input" if len(shape) == 1 else "First dimension of 2D input"
        raise InvalidArgumentError(
            f"{what} must be of size {full - 2} or {full}, but got shape {shape_text(shape)}"
        )
    if len(shape) == 2 and shape[1] != 2:
        raise InvalidArgumentError(
            f"Second dimension of 2D input must be of size 2, but got shape {shape_text(shape)}"
        )


KERNELS = (
    KernelDef("DataFormatDimMap", data_format_dim_map),
    KernelDef("DataFormatVecPermute", data_format_vec_permute),
)
