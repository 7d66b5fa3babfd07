"""Control scopes: `with graph.control_dependencies(…)` adds control inputs to new operations.

TF: tensorflow/python/framework/ops.py (_ControlDependenciesController)
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator, Sequence

from runtime.client.framework.operation import Operation, Tensor


@dataclasses.dataclass
class _Scope:
    """The control inputs of one scope, and the operations made in it, which wait for them."""

    control_inputs: list[Operation]
    made_inside: set[Operation] = dataclasses.field(default_factory=set)


class ControlScopes:
    """For each thread, the control scopes that it has entered, outermost first."""

    def __init__(self) -> None:
        self._current = threading.local()

    @property
    def _stack(self) -> list[_Scope]:
        if not hasattr(self._current, "stack"):
            self._current.stack = []
        stack: list[_Scope] = self._current.stack
        return stack

    @contextlib.contextmanager
    def entered(self, control_inputs: Sequence[Operation] | None) -> Iterator[None]:
        """Add control inputs to operations made inside; None suspends all outer scopes."""
        outer = self._stack
        inner = [_Scope(list(control_inputs))] if control_inputs is not None else []
        self._current.stack = [*outer, *inner] if control_inputs is not None else []
        try:
            yield
        finally:
            self._current.stack = outer

    def for_inputs(self, inputs: Sequence[Tensor]) -> list[Operation]:
        """Return the control inputs that an operation with these data inputs still needs."""
        sources = {tensor.op for tensor in inputs}
        wanted: dict[Operation, None] = {}
        for scope in self._stack:
            if not sources & scope.made_inside:  # otherwise an input already waits for them
                wanted |= dict.fromkeys(scope.control_inputs)
        return [operation for operation in wanted if operation not in sources]

    def note(self, operation: Operation) -> None:
        """Record a new operation, which waits for the control inputs of the current scopes."""
        for scope in self._stack:
            scope.made_inside.add(operation)
