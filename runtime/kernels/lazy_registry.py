"""The built-in kernels, imported op by op, because a server that runs one model needs few of them.

`op_index.json` lists the modules with kernels for each op; `tools/write/op_table.py` writes it and
a test checks that it is current. If the index lacks an op, every module is imported. A stale index
therefore costs only time.

The bound on the memory of a kernel (`KernelDef.memory`) stands in `memory_needs.py` of its room:
`MEMORY_NEEDS` has the functions by op, `INPUT_MULTIPLES` the numbers.

Guarantees: thread-safe; the kernels of a module are registered once; if two modules register the
same op, device and types, importing the second one raises.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.resources
import importlib.util
import json
import threading
from collections.abc import Mapping

from runtime.framework import op_def_registry, op_packages
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_kernel import KernelDef, MemoryNeed

# Ops that executors run themselves. A node whose op is the name of a function has no kernel
# either.
_WITHOUT_KERNEL = frozenset(
    ("_Arg", "_Retval", "Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit", "LoopCond",
     "NextIteration", "RefNextIteration")
)  # fmt: skip


@functools.cache
def op_index() -> dict[str, list[str]]:
    """Return, for each op, the names of the modules that have kernels for it."""
    text = importlib.resources.files("runtime.kernels").joinpath("op_index.json").read_text()
    index: dict[str, list[str]] = json.loads(text)
    return index


@functools.cache
def memory_needs(room: str) -> Mapping[str, MemoryNeed | int]:
    """Return `KernelDef.memory` by op for the kernels of a room."""
    name = f"runtime.kernels.{room}.memory_needs"
    if importlib.util.find_spec(name) is None:
        return {}
    module = importlib.import_module(name)
    return {**module.INPUT_MULTIPLES, **module.MEMORY_NEEDS}


def with_memory(kernel: KernelDef, needs: Mapping[str, MemoryNeed | int]) -> KernelDef:
    """Return `kernel` with the bound that `needs` has for its op, if there is one."""
    need = needs.get(kernel.op)
    return kernel if need is None else dataclasses.replace(kernel, memory=need)


class LazyKernelRegistry(KernelRegistry):
    """A registry that imports the modules of an op when the op is looked up for the first time."""

    is_built_in = True

    def __init__(self, modules: tuple[str, ...]) -> None:
        super().__init__()
        self._modules = frozenset(modules)
        self._imported: set[str] = set()
        self._lock = threading.RLock()  # guards _imported, and the tables while kernels are added

    def has(self, op: str) -> bool:
        """Return whether any kernel is registered for `op`; this imports no module of the index."""
        return op in op_index() or bool(self.kernels_of(op))

    @property
    def ops(self) -> list[str]:
        """The sorted names of all ops with a kernel; reading this property imports every module."""
        self._import(self._modules)
        return super().ops

    def kernels_of(self, op: str) -> list[KernelDef]:
        """Return the kernels of `op`; import the modules of `op` before, if needed."""
        indexed = op_index().get(op)
        if indexed is None and op in op_packages.package_ops():
            return list(op_packages.kernels_of_package(op)[0])
        if indexed is None and (op in _WITHOUT_KERNEL or op_def_registry.find(op) is None):
            return []
        wanted = self._modules if indexed is None else self._modules.intersection(indexed)
        if not wanted <= self._imported:
            self._import(wanted)
        return super().kernels_of(op)

    def _import(self, modules: frozenset[str]) -> None:
        with self._lock:
            for name in sorted(modules - self._imported):
                needs = memory_needs(name.partition(".")[0])
                for kernel in importlib.import_module(f"runtime.kernels.{name}").KERNELS:
                    self.register(with_memory(kernel, needs))
                self._imported.add(name)
