"""Names of tensors and nodes: `x:1`, `x` (which means `x:0`), and `^x` for a control input.

TF: tensorflow/core/graph/tensor_id.h, node_def_util.cc (valid names)
"""

from __future__ import annotations

import re

from runtime.foundation.errors import InvalidArgumentError

CONTROL_SLOT = -1
_MAX_INDEX_DIGITS = 10  # enough for an int32; more digits are part of the node's name
_NODE_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*\Z")


def parse_tensor_name(name: str) -> tuple[str, int]:
    """Return (node, output index) of a tensor's name; the index is −1 for `^x`."""
    if name.startswith("^"):
        return name[1:], CONTROL_SLOT
    node, colon, text = name.rpartition(":")
    index = parse_index(text) if colon else None
    return (name, 0) if index is None else (node, index)


def parse_index(text: str) -> int | None:
    """Return the index of an output that is written as `text`; None if it is not an index."""
    if len(text) <= _MAX_INDEX_DIGITS and text.isascii() and text.isdecimal():
        return int(text)
    return None


def fed_more_than_once(name: str) -> InvalidArgumentError:
    """Return the error for a tensor that one step feeds twice. TF: direct_session.cc"""
    return InvalidArgumentError(f'Endpoint "{name}" fed more than once.')


def is_valid_node_name(name: str) -> bool:
    """Return whether `name` is a valid name of a node."""
    return _NODE_NAME.match(name) is not None
