"""What a front accepts as JSON: how large bodies are checked, and what faults are called.

Guarantees: a body is accepted or refused by the same functions, whether it is read as a whole or in
parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from runtime.errors import InvalidArgumentError


class JsonFaultError(Exception):
    """The first fault of a text: what it is, and its position in bytes."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(what)
        self.position = position
        self.what = what


@dataclasses.dataclass(frozen=True, slots=True)
class JsonDialect:
    """The JSON of a front.

    `check` raises JsonFaultError for the first fault of a text, and `parse` returns the value of
    a text without faults. `scalar` does both for the text of a body that is no list and no object.
    `error` makes the client's error of a body and of a fault in it.
    """

    check: Callable[[bytes], None]
    parse: Callable[[bytes], Any]
    scalar: Callable[[bytes], Any]
    error: Callable[[bytes, JsonFaultError], InvalidArgumentError]
    max_depth: int  # lists and objects inside each other
    too_deep: str  # what a deeper one is called; its position is that after its bracket
    ends_after_value: bool  # whatever follows the first value is ignored
    is_utf8: bool  # bytes that are not UTF-8 are a fault, at position 0
    skips_byte_order_mark: bool


BYTE_ORDER_MARK = b"\xef\xbb\xbf"
