"""Gradient overrides: `with graph.gradient_override_map(…)` for new operations.

TF: tensorflow/python/framework/ops.py (Graph.gradient_override_map)
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping

import protos as pb

_ATTR = "_gradient_op_type"


class GradientOverrides:
    """For each thread, the overrides that it has entered: op → name of a gradient function."""

    def __init__(self) -> None:
        self._current = threading.local()

    @contextlib.contextmanager
    def entered(self, names: Mapping[str, str]) -> Iterator[None]:
        """Override the gradient functions of operations made inside.

        Raises TypeError unless `names` is a mapping from strings to strings.
        """
        if not isinstance(names, Mapping):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        for op, name in names.items():
            if not isinstance(op, str) or not isinstance(name, str):
                raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        outer: Mapping[str, str] = getattr(self._current, "names", {})
        self._current.names = {**outer, **names}
        try:
            yield
        finally:
            self._current.names = outer

    def mark(self, node_def: pb.NodeDef) -> None:
        """Write the override of a new operation, if there is one, into `_gradient_op_type`."""
        name = getattr(self._current, "names", {}).get(node_def.op)
        if name is not None and _ATTR not in node_def.attr:
            node_def.attr[_ATTR].s = name.encode()
