"""The built-in kernels, imported op by op: a server that runs one model needs few of them.

`op_index.json` says which modules serve an op; `tools/write_op_table.py` writes it and a test keeps
it fresh. An op that it does not know makes every module be imported, so a stale index costs time
and nothing else.

Guarantees: thread-safe; a module's rows are registered once; registering the same op, device and
types twice raises when the second module is imported.
"""

from __future__ import annotations

import functools
import importlib
import importlib.resources
import json
import threading

from runtime.framework import op_def_registry
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_kernel import KernelDef

# What executors do themselves. Names of functions have no kernel either.
_WITHOUT_KERNEL = frozenset(
    ("_Arg", "_Retval", "Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit", "LoopCond",
     "NextIteration", "RefNextIteration")
)  # fmt: skip


@functools.cache
def op_index() -> dict[str, list[str]]:
    """Op → the modules with kernels for it."""
    text = importlib.resources.files("runtime.kernels").joinpath("op_index.json").read_text()
    index: dict[str, list[str]] = json.loads(text)
    return index


class LazyKernelRegistry(KernelRegistry):
    """A registry that imports the modules of an op when it is first asked for."""

    is_built_in = True

    def __init__(self, modules: tuple[str, ...]) -> None:
        super().__init__()
        self._modules = frozenset(modules)
        self._imported: set[str] = set()
        self._lock = threading.RLock()  # guards _imported and the tables while rows are added

    def has(self, op: str) -> bool:
        """Whether any kernel serves `op`."""
        return bool(self.kernels_of(op))

    @property
    def ops(self) -> list[str]:
        """Names of the ops with a kernel, sorted."""
        self._import(self._modules)
        return super().ops

    def kernels_of(self, op: str) -> list[KernelDef]:
        """The rows of one op; imports what serves it."""
        indexed = op_index().get(op)
        if indexed is None and (op in _WITHOUT_KERNEL or op_def_registry.find(op) is None):
            return []
        wanted = self._modules if indexed is None else self._modules.intersection(indexed)
        if not wanted <= self._imported:
            self._import(wanted)
        return super().kernels_of(op)

    def _import(self, modules: frozenset[str]) -> None:
        with self._lock:
            for name in sorted(modules - self._imported):
                for kernel in importlib.import_module(f"runtime.kernels.{name}").KERNELS:
                    self.register(kernel)
                self._imported.add(name)
