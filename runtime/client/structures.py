"""Nested lists, tuples, namedtuples and dicts as flat lists, and back.

TF: tensorflow/python/util/nest.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def flatten(structure: Any) -> list[Any]:
    """The leaves, in order; dicts by sorted key."""
    if isinstance(structure, Mapping):
        return [leaf for key in sorted(structure) for leaf in flatten(structure[key])]
    if isinstance(structure, list | tuple):
        return [leaf for each in structure for leaf in flatten(each)]
    return [structure]


def pack_as(structure: Any, leaves: list[Any]) -> Any:
    """The structure with other leaves in it."""
    return _pack(structure, iter(leaves))


def _pack(structure: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(structure, Mapping):
        packed = {key: _pack(structure[key], leaves) for key in sorted(structure)}
        return type(structure)((key, packed[key]) for key in structure)  # type: ignore[call-arg]
    if isinstance(structure, list | tuple):
        parts = [_pack(each, leaves) for each in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)
    return next(leaves)
