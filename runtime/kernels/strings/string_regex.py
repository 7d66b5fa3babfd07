r"""RegexFullMatch and RegexReplace by RE2, which takes time linear in the length of a string.

A rewrite string refers to groups as `\0` … `\9`. As in RE2, if it refers to a group that the
pattern does not have, strings remain unchanged.

TF: tensorflow/core/kernels/regex_full_match_op.cc, regex_replace_op.cc
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import re2

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import raw_bytes
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings, map_strings, scalar_string

# re2 has no type stubs; its classes have the methods of the classes in the standard module `re`.
Expression = Any
Match = Any
Expand = Callable[[bytes, Match], bytes]


@functools.lru_cache(maxsize=256)
def compiled(pattern: bytes) -> Expression:
    """Compile `pattern`; raise InvalidArgumentError with RE2's reason if it is invalid."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        raise InvalidArgumentError(
            f"Invalid pattern: {_show(pattern)}, "
            f"error: {_show(reason) if isinstance(reason, bytes) else reason}"
        ) from None


def _show(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def scalar_pattern(value: np.ndarray, what: str) -> bytes:
    """Return the only string of a tensor. Raises InvalidArgumentError if it is no scalar."""
    array = as_strings(value)
    if array.ndim:
        raise InvalidArgumentError(f"{what} must be scalar, but received {shape_text(array.shape)}")
    return scalar_string(array)


def _full_match(strings: np.ndarray, pattern: bytes) -> np.ndarray:
    expression = compiled(pattern)
    array = as_strings(strings)
    matches = [expression.fullmatch(item) is not None for item in array.ravel().tolist()]
    return np.array(matches, np.bool_).reshape(array.shape)


def regex_full_match(input: np.ndarray, pattern: np.ndarray) -> np.ndarray:
    """RegexFullMatch: return whether each whole string matches `pattern`."""
    return _full_match(input, scalar_pattern(pattern, "Pattern"))


def static_regex_full_match(input: np.ndarray, *, pattern: str) -> np.ndarray:
    """StaticRegexFullMatch: return whether each whole string matches `pattern`."""
    return _full_match(input, raw_bytes(pattern))


def regex_replace(
    input: np.ndarray,
    pattern: np.ndarray,
    rewrite: np.ndarray,
    *,
    replace_global: bool,
) -> np.ndarray:
    """RegexReplace: replace the first match of `pattern` in each string by `rewrite`.

    If `replace_global` is true, every match is replaced.
    """
    replace = _replacer(
        scalar_pattern(pattern, "Pattern"), scalar_pattern(rewrite, "Rewrite"), replace_global
    )
    return map_strings(replace, input)


def static_regex_replace(
    input: np.ndarray,
    *,
    pattern: str,
    rewrite: str,
    replace_global: bool,
) -> np.ndarray:
    """StaticRegexReplace: replace the first match of `pattern` in each string by `rewrite`.

    If `replace_global` is true, every match is replaced.
    """
    return map_strings(_replacer(raw_bytes(pattern), raw_bytes(rewrite), replace_global), input)


@functools.lru_cache(maxsize=256)
def _replacer(pattern: bytes, rewrite: bytes, replace_global: bool) -> Callable[[bytes], bytes]:
    """Return a function that replaces the first match of `pattern` in a string by `rewrite`.

    If `replace_global` is true, it replaces every match.
    """
    expression = compiled(pattern)
    parts, is_valid = _rewrite_parts(rewrite)
    highest = max((part for part in parts if isinstance(part, int)), default=0)
    if highest > expression.groups:
        return lambda text: text

    def expand(text: bytes, match: Match) -> bytes:
        if len(parts) == 1 and isinstance(parts[0], bytes):
            return parts[0]
        spans = (text[slice(*match.span(p))] if isinstance(p, int) else p for p in parts)
        return b"".join(spans)

    if replace_global:
        return lambda text: _replace_all(expression, expand, text)
    # If the rewrite is malformed, RE2's Replace returns the string unchanged; its GlobalReplace,
    # above, uses the part of the rewrite before the error.
    return lambda text: _replace_first(expression, expand, text) if is_valid else text


def _rewrite_parts(rewrite: bytes) -> tuple[list[bytes | int], bool]:
    r"""Return the literal bytes and group numbers of a rewrite string, and whether it is valid.

    It is invalid if a `\` precedes anything but a digit or `\`; the parts end at the first such
    place.
    """
    parts: list[bytes | int] = []
    position = 0
    for escape in re.finditer(rb"\\([0-9\\])?", rewrite):
        if escape.start() > position:
            parts.append(rewrite[position : escape.start()])
        if escape[1] is None:
            return parts, False
        parts.append(b"\\" if escape[1] == b"\\" else int(escape[1]))
        position = escape.end()
    if position < len(rewrite):
        parts.append(rewrite[position:])
    return parts, True


def _replace_first(expression: Expression, expand: Expand, text: bytes) -> bytes:
    match = expression.search(text)
    if match is None:
        return text
    return text[: match.start()] + expand(text, match) + text[match.end() :]


def _replace_all(expression: Expression, expand: Expand, text: bytes) -> bytes:
    pieces: list[bytes] = []
    position, last_end = 0, -1
    while position <= len(text):
        match = expression.search(text, position)
        if match is None:
            break
        start, end = match.span()
        pieces.append(text[position:start])
        if start == end == last_end:
            # As in RE2, an empty match directly after a match is ignored; one character is copied.
            step = _character_length(text, position)
            pieces.append(text[position : position + step])
            position += step
            continue
        pieces.append(expand(text, match))
        position = last_end = end
    return b"".join((*pieces, text[position:]))


def _character_length(text: bytes, position: int) -> int:
    """Return the number of bytes of the UTF-8 character at `position`; 1 if it is invalid."""
    first = text[position] if position < len(text) else 0
    length = 1 + (first >= 0xC2) + (first >= 0xE0) + (first >= 0xF0)
    try:
        text[position : position + length].decode()
    except UnicodeDecodeError:
        return 1
    return length


KERNELS = (
    KernelDef("RegexFullMatch", regex_full_match),
    KernelDef("RegexReplace", regex_replace),
    KernelDef("StaticRegexFullMatch", static_regex_full_match),
    KernelDef("StaticRegexReplace", static_regex_replace),
)
