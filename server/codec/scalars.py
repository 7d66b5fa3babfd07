"""Scalars in JSON: bytes, text, and numbers that are not finite."""

from __future__ import annotations

import base64
import enum
import math

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class NonFinite(enum.StrEnum):
    """How NaN and the infinities are written, for which JSON has no form."""

    TOKEN = "token"  # bare NaN, Infinity, -Infinity, as TensorFlow Serving writes them
    STRING = "string"
    NULL = "null"
    ERROR = "error"


def non_finite_word(value: float) -> str:
    """The key of NON_FINITE for a value that is not finite."""
    if value != value:
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def encode_base64(content: bytes) -> str:
    """Standard base64 with padding."""
    return base64.b64encode(content).decode("ascii")


def base64_object(content: bytes) -> dict[str, str]:
    """`{"b64": "…"}`, which stands for bytes where a string is expected."""
    return {"b64": encode_base64(content)}


def text_or_base64(content: bytes) -> str | dict[str, str]:
    """The text of bytes that are UTF-8, `{"b64": "…"}` for others."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return base64_object(content)
