"""Free many objects one by one, so that other threads get the interpreter lock in between.

Where the last reference to a container goes, its elements are freed in one go, with the lock held:
a graph of 20,000 nodes and its compiled step take 30 ms. A loop in Python instead gives way to
other threads, like any other Python code.

Whatever has such a container calls `free_elements`, or `free_gradually`, in its `__del__`. Objects
may have several owners: they are freed by the last of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def free_gradually(objects: list[Any]) -> None:
    """Empty `objects`, the list of what the caller gives up and holds nowhere else any more."""
    while objects:
        objects.pop()


def free_elements(owner: object, name: str) -> None:
    """Free the elements of the list or mapping `owner.name`, which is an empty one then."""
    container = getattr(owner, name)
    is_mapping = isinstance(container, Mapping)
    elements = [*container.values()] if is_mapping else [*container]
    object.__setattr__(owner, name, {} if is_mapping else [])  # also where the class is frozen
    del container
    free_gradually(elements)
