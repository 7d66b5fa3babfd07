"""Which operations new operations wait for: nested `with graph.control_dependencies(…)`.

TF: tensorflow/python/framework/ops.py (_ControlDependenciesController)
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator, Sequence

from runtime.client.operation import Operation, Tensor


@dataclasses.dataclass
class _Scope:
    """What the operations made in a scope wait for; those made so far, which wait already."""

    control_inputs: list[Operation]
    made_inside: set[Operation] = dataclasses.field(default_factory=set)


class ControlScopes:
    """What each thread has entered, outermost first."""

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
        """Operations made inside wait for these too; None: for none, whatever is around."""
        outer = self._stack
        inner = [_Scope(list(control_inputs))] if control_inputs is not None else []
        self._current.stack = [*outer, *inner] if control_inputs is not None else []
        try:
            yield
        finally:
            self._current.stack = outer

    def for_inputs(self, inputs: Sequence[Tensor]) -> list[Operation]:
        """What an operation with these inputs has to wait for besides them."""
        sources = {tensor.op for tensor in inputs}
        wanted: dict[Operation, None] = {}
        for scope in self._stack:
            if not sources & scope.made_inside:  # else an input waits for all of it
                wanted |= dict.fromkeys(scope.control_inputs)
        return [operation for operation in wanted if operation not in sources]

    def note(self, operation: Operation) -> None:
        """Record an operation that waits for what the scopes say."""
        for scope in self._stack:
            scope.made_inside.add(operation)
