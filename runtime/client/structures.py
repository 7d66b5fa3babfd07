"""Conversion of nested lists, tuples, namedtuples and dicts to flat lists, and back.

A leaf is an element that is none of these containers.

TF: tensorflow/python/util/nest.py
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping

from runtime.client.framework.argument_types import Structure
from runtime.client.framework.operation import Tensor


class Composite(abc.ABC):
    """A leaf that wraps a tensor, such as a TensorArray."""

    @abc.abstractmethod
    def rebuilt(self, tensor: Tensor) -> Composite:
        """Return a copy of the leaf that wraps `tensor` instead."""


def flatten(structure: Structure) -> list[Structure]:
    """Return the leaves in order; the values of a dict come in the order of its sorted keys."""
    if isinstance(structure, Mapping):
        return [leaf for key in sorted(structure) for leaf in flatten(structure[key])]
    if isinstance(structure, list | tuple):
        return [leaf for each in structure for leaf in flatten(each)]
    return [structure]


def pack_as(structure: Structure, leaves: list[Structure]) -> Structure:
    """Return a structure of the same form that has `leaves`, in the order of `flatten`."""
    return _pack(structure, iter(leaves))


def _pack(structure: Structure, leaves: Iterator[Structure]) -> Structure:
    if isinstance(structure, Mapping):
        packed = {key: _pack(structure[key], leaves) for key in sorted(structure)}
        return type(structure)((key, packed[key]) for key in structure)  # type: ignore[call-arg]
    if isinstance(structure, list | tuple):
        parts = [_pack(each, leaves) for each in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)
    leaf = next(leaves)
    return structure.rebuilt(leaf) if isinstance(structure, Composite) else leaf


def is_same_structure(one: Structure, other: Structure) -> bool:
    """Return whether `one` and `other` have the same nesting and types of containers."""
    if isinstance(one, Mapping):
        return (
            isinstance(other, Mapping)
            and sorted(one) == sorted(other)
            and all(is_same_structure(one[key], other[key]) for key in one)
        )
    if isinstance(one, list | tuple):
        return (
            type(one) is type(other)
            and len(one) == len(other)
            and all(is_same_structure(*pair) for pair in zip(one, other, strict=True))
        )
    return not isinstance(other, Mapping | list | tuple)
