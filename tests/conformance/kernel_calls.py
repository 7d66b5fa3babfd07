"""The kernel calls of recorded cases, with what their memory rows say and what they allocate."""

from __future__ import annotations

import contextlib
import dataclasses
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from runtime.executors import instructions
from runtime.framework.kernel_registry import bind
from runtime.framework.op_kernel import KernelDef, NodeView, signature
from runtime.kernels.data.memory_needs import OF_ELEMENTS
from runtime.kernels.io.memory_needs import OF_FILES
from runtime.kernels.lazy_registry import op_index
from runtime.kernels.memory_sizes import size_of

# Objects whose number does not depend on the inputs: errors, shapes, buffers of native code.
SLACK = 1 << 16
# What these give depends on a dataset, a reader or a file.
NOT_OF_INPUTS = frozenset((*OF_ELEMENTS, *OF_FILES))


@contextlib.contextmanager
def traced() -> Iterator[None]:
    """Trace allocations, but not those of graphs and plans: that takes most of the time."""
    if tracemalloc.is_tracing():  # inside the call of a kernel that calls a function
        yield
        return
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


@dataclasses.dataclass
class Call:
    """A kernel that an executor is about to call, and the node for which it is bound."""

    kernel: KernelDef
    node: NodeView
    arguments: tuple[Any, ...]

    @property
    def op(self) -> str:
        return self.kernel.op

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.arguments[1:] if self.kernel.needs_context else self.arguments

    def with_inputs(self, inputs: Sequence[Any]) -> Call:
        head = self.arguments[:1] if self.kernel.needs_context else ()
        return dataclasses.replace(self, arguments=(*head, *inputs))

    def run(self) -> Any:
        return bind(self.kernel, self.node)(*self.arguments)

    def bound(self) -> int:
        """Return the bytes that the kernel's row gives for the call, without SLACK."""
        need = self.kernel.memory
        if need is None or isinstance(need, int):
            return (1 if need is None else need) * size_of(*self.inputs)
        needs_context, names = signature(need)
        attrs = {name: self.node.attr(name) for name in names}
        head = self.arguments[:1] if needs_context else ()
        return need(*head, *self.inputs, **attrs)

    def allocated(self) -> int:
        """Run the kernel, and return how many bytes it had allocated at most at one time."""
        with traced():
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            result = self.run()
            peak = tracemalloc.get_traced_memory()[1]
            del result
            return peak - before


@contextlib.contextmanager
def calls_seen(see: Callable[[Call], Any], patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let `see` run each kernel of the step plans that are compiled inside this context."""

    def seen(kernel: KernelDef, node: NodeView) -> Callable[..., Any]:
        if getattr(kernel.function, "of_node", None) is not None:
            return bind(kernel, node)  # a dataset: an object that holds its inputs
        return lambda *arguments: see(Call(kernel, node, arguments))

    with patch.context() as inside:
        inside.setattr(instructions, "bind", seen)
        inside.setattr(instructions, "bind_in_place", lambda kernel, node: None)
        yield


def all_ops() -> list[str]:
    return sorted(op_index())
