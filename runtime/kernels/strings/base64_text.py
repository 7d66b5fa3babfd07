"""EncodeBase64 and DecodeBase64: web-safe base64, with or without padding.

TF: tensorflow/core/lib/strings/base64.cc
"""

from __future__ import annotations

import base64
import re

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import map_strings

_VALID = re.compile(rb"[A-Za-z0-9_-]*={0,2}")


def encode_base64(input: np.ndarray, *, pad: bool) -> np.ndarray:
    """EncodeBase64: encode every element in web-safe base64; append `=` signs if `pad` is true."""
    encode = base64.urlsafe_b64encode
    return map_strings(encode if pad else lambda item: encode(item).rstrip(b"="), input)


def decode_base64(input: np.ndarray) -> np.ndarray:
    """DecodeBase64: decode every element.

    Raises InvalidArgumentError if an element is not valid web-safe base64.
    """
    return map_strings(_decode, input)


def _decode(text: bytes) -> bytes:
    if len(text) % 4 == 1:
        raise InvalidArgumentError(f"Base64 string length {len(text)} is invalid: 1 modulo 4")
    digits = text.rstrip(b"=")
    is_padded_wrong = len(digits) < len(text) and len(text) % 4
    if is_padded_wrong or _VALID.fullmatch(text) is None:
        raise InvalidArgumentError("Invalid character found in base64.")
    return base64.urlsafe_b64decode(digits + b"=" * (-len(digits) % 4))


KERNELS = (
    KernelDef("DecodeBase64", decode_base64),
    KernelDef("EncodeBase64", encode_base64),
)
