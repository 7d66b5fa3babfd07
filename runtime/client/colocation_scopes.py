"""Which operation new operations stand beside: nested `with graph.colocate_with(…)`.

TF: tensorflow/python/framework/ops.py (Graph.colocate_with)
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import protos as pb
from runtime.client.operation import Operation

_ATTR = "_class"


class ColocationScopes:
    """What each thread has entered, outermost first."""

    def __init__(self) -> None:
        self._current = threading.local()

    @contextlib.contextmanager
    def entered(self, operation: Operation | None, ignore_existing: bool) -> Iterator[None]:
        """Operations made inside stand beside `operation` too; None: beside none."""
        outer: list[Operation] = getattr(self._current, "stack", [])
        kept = [] if ignore_existing or operation is None else outer
        self._current.stack = kept if operation is None else [*kept, operation]
        try:
            yield
        finally:
            self._current.stack = outer

    def mark(self, node_def: pb.NodeDef) -> None:
        """Write where a new operation stands into its `_class`."""
        beside: list[Operation] = getattr(self._current, "stack", [])
        if beside and _ATTR not in node_def.attr:
            places = {place for each in beside for place in _places(each)}
            node_def.attr[_ATTR].list.s.extend(sorted(places))


def _places(operation: Operation) -> list[bytes]:
    """Where an operation stands itself, else beside it."""
    known = operation.node_def.attr[_ATTR].list.s if _ATTR in operation.node_def.attr else ()
    return list(known) or [b"loc:@" + operation.name.encode()]
