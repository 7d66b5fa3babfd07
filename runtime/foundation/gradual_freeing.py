"""Free many objects one by one, so that other threads get the interpreter lock in between.

Where the last reference to a container goes, its elements are freed in one go, with the lock held:
a graph of 20,000 nodes and its compiled step take 30 ms. A loop in Python instead gives way to
other threads, like any other Python code.

Whatever has such a container calls `free_gradually` in its `__del__`. Objects may have several
owners: they are freed by the last of them.
"""

from __future__ import annotations

from typing import Any


def free_gradually(objects: list[Any]) -> None:
    """Empty `objects`, the list of what the caller gives up and holds nowhere else any more."""
    while objects:
        objects.pop()
