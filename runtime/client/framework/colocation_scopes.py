"""Colocation scopes: `with graph.colocate_with(…)` places new operations beside others.

TF: tensorflow/python/framework/ops.py (Graph.colocate_with)
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import protos as pb
from runtime.client.framework.operation import Operation

_ATTR = "_class"


class ColocationScopes:
    """For each thread, the operations that new operations are colocated with, outermost first."""

    def __init__(self) -> None:
        self._current = threading.local()

    @contextlib.contextmanager
    def entered(self, operation: Operation | None, ignore_existing: bool) -> Iterator[None]:
        """Colocate operations made inside with `operation` too; None means with no operation."""
        outer: list[Operation] = getattr(self._current, "stack", [])
        inherited = [] if ignore_existing or operation is None else outer
        self._current.stack = inherited if operation is None else [*inherited, operation]
        try:
            yield
        finally:
            self._current.stack = outer

    def mark(self, node_def: pb.NodeDef) -> None:
        """Write the colocation groups of a new operation into `_class`, unless that is set."""
        operations: list[Operation] = getattr(self._current, "stack", [])
        if operations and _ATTR not in node_def.attr:
            groups = {group for each in operations for group in _colocation_groups(each)}
            node_def.attr[_ATTR].list.s.extend(sorted(groups))


def _colocation_groups(operation: Operation) -> list[bytes]:
    """Return the operation's colocation groups, or the group named after the operation."""
    given = operation.node_def.attr[_ATTR].list.s if _ATTR in operation.node_def.attr else ()
    return list(given) or [b"loc:@" + operation.name.encode()]
