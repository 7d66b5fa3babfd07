"""Joining strings and changing their case.

TF: tensorflow/core/kernels/string_join_op.cc, string_lower_op.cc, string_upper_op.cc,
string_strip_op.cc, reduce_join_op.cc, unsorted_segment_join_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import raw_bytes
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings, map_strings, string_tensor


def string_join(*inputs: np.ndarray, separator: str) -> np.ndarray:
    """StringJoin: join the inputs elementwise with `separator`; scalars are broadcast."""
    parts = [as_strings(each) for each in inputs]
    shape: tuple[int, ...] = ()
    for part in parts:
        if part.ndim and shape and part.shape != shape:
            raise InvalidArgumentError(
                f"Input shapes do not match: {shape_text(shape)} vs. {shape_text(part.shape)}"
            )
        shape = shape or part.shape
    columns = [np.broadcast_to(part, shape).ravel().tolist() for part in parts]
    if not columns:
        return string_tensor([b""], ())
    return string_tensor(map(raw_bytes(separator).join, zip(*columns, strict=True)), shape)


def _check_encoding(encoding: str) -> None:
    if encoding not in ("", "utf-8"):
        raise InvalidArgumentError(
            f"only utf-8 or '' (no encoding) is supported, received {encoding}"
        )


def string_lower(input: np.ndarray, *, encoding: str) -> np.ndarray:
    """StringLower: convert ASCII letters to lower case, or every letter if `encoding` is utf-8."""
    _check_encoding(encoding)
    if not encoding:
        return map_strings(bytes.lower, input)
    return map_strings(lambda item: _text(item).lower().encode(), input)


def string_upper(input: np.ndarray, *, encoding: str) -> np.ndarray:
    """StringUpper: convert ASCII letters to upper case, or every letter if `encoding` is utf-8."""
    _check_encoding(encoding)
    if not encoding:
        return map_strings(bytes.upper, input)
    return map_strings(lambda item: _text(item).upper().encode(), input)


def _text(item: bytes) -> str:
    """Decode `item` up to the first zero byte, where TensorFlow's decoder ends the string."""
    return item.partition(b"\0")[0].decode("utf-8", "replace")


def string_strip(input: np.ndarray) -> np.ndarray:
    """StringStrip: remove ASCII white space from both ends of each string."""
    return map_strings(bytes.strip, input)


KERNELS = (
    KernelDef("StringJoin", string_join),
    KernelDef("StringLower", string_lower),
    KernelDef("StringStrip", string_strip),
    KernelDef("StringUpper", string_upper),
)
