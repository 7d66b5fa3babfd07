"""The stacks of default graphs and default sessions; the innermost entry is the default.

Guarantees: each thread has separate stacks, which are empty at first.

TF: tensorflow/python/framework/ops.py (_DefaultStack)
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

from runtime.client.framework.operation import OperationGraph, SessionLike

Default = TypeVar("Default")


class DefaultStack(threading.local, Generic[Default]):
    """The nested default objects of the current thread, innermost last."""

    def __init__(self) -> None:
        self._stack: list[Default] = []

    @property
    def innermost(self) -> Default | None:
        """The innermost object on the stack, or None if the stack is empty."""
        return self._stack[-1] if self._stack else None

    @property
    def depth(self) -> int:
        """The number of objects on the stack."""
        return len(self._stack)

    def push(self, default: Default) -> None:
        """Put `default` on the stack, so that it is the default."""
        self._stack.append(default)

    def remove(self, default: Default) -> None:
        """Remove the innermost entry of `default`, wherever it is on the stack."""
        for index in reversed(range(len(self._stack))):
            if self._stack[index] is default:
                del self._stack[index]
                return

    @contextlib.contextmanager
    def entered(self, default: Default) -> Iterator[Default]:
        """Make `default` the default inside.

        Raises AssertionError at the end if another object is then innermost.
        """
        self._stack.append(default)
        try:
            yield default
        finally:
            if self.innermost is not default:
                raise AssertionError(
                    f"Nesting violated for default stack of {type(default)} objects"
                )
            self._stack.pop()


default_graphs: DefaultStack[OperationGraph] = DefaultStack()
default_sessions: DefaultStack[SessionLike] = DefaultStack()


def get_default_session() -> SessionLike | None:
    """Return the default session of this thread, or None if there is none."""
    return default_sessions.innermost
