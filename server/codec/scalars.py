"""Write scalars as JSON: bytes, text, and numbers that are not finite."""

from __future__ import annotations

import base64
import enum
import math

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class NonFinite(enum.StrEnum):
    """The ways to write NaN and infinities, which JSON cannot express as numbers."""

    TOKEN = "token"  # bare NaN, Infinity or -Infinity, as TensorFlow Serving writes them
    STRING = "string"
    NULL = "null"
    ERROR = "error"


def non_finite_word(value: float) -> str:
    """Return the key of NON_FINITE that stands for `value`, which must be NaN or an infinity."""
    if value != value:
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def encode_base64(content: bytes) -> str:
    """Encode bytes in standard base64 with padding."""
    return base64.b64encode(content).decode("ascii")


def base64_object(content: bytes) -> dict[str, str]:
    """Return `{"b64": "…"}`, which stands for bytes in a place where JSON has a string."""
    return {"b64": encode_base64(content)}


def text_or_base64(content: bytes) -> str | dict[str, str]:
    """Decode `content` as UTF-8 text, or return `{"b64": "…"}` if it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return base64_object(content)
