"""Kernels in rooms, one file an op family; `KERNEL_MODULES` lists the modules of every room.

Each module ends with a table `KERNELS` of `KernelDef` rows. To add a family: a module in its room,
its name in the room's `MODULES`, a case table in the room of the same name under
tests/conformance/cases/.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from runtime.framework.op_kernel import KernelDef

KERNEL_ROOMS: tuple[str, ...] = (
    "array",
    "math",
    "linalg",
    "nn",
    "random",
    "state",
    "control",
    "data",
    "strings",
    "image",
    "sparse",
    "quantization",
    "io",
)
# Module names below `runtime.kernels`, such as "array.gather".
KERNEL_MODULES: tuple[str, ...] = tuple(
    f"{room}.{module}"
    for room in KERNEL_ROOMS
    for module in importlib.import_module(f"runtime.kernels.{room}").MODULES
)


def kernel_defs() -> Iterator[KernelDef]:
    """Yield every row of every table, in order."""
    for name in KERNEL_MODULES:
        yield from importlib.import_module(f"runtime.kernels.{name}").KERNELS
