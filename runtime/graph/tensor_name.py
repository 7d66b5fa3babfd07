"""Names of tensors and nodes: `x:1`, `x` (which means `x:0`), `^x`.

TF: tensorflow/core/graph/tensor_id.h, node_def_util.cc (valid names)
"""

from __future__ import annotations

import re

CONTROL_SLOT = -1
_NODE_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*\Z")


def parse_tensor_name(name: str) -> tuple[str, int]:
    """(node, output index) of a tensor's name; `^x` gives index −1."""
    if name.startswith("^"):
        return name[1:], CONTROL_SLOT
    node, colon, index = name.rpartition(":")
    if colon and index.isascii() and index.isdecimal():
        return node, int(index)
    return name, 0


def is_valid_node_name(name: str) -> bool:
    """Whether `name` is a valid node name."""
    return _NODE_NAME.match(name) is not None
