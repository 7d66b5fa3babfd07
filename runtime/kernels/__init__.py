"""Kernels, one file per op family, in folders that are called rooms.

`KERNEL_MODULES` lists the modules of all rooms. Each module ends with a table `KERNELS` of
`KernelDef` rows. To add a family, add a module to its room, add the name of the module to `MODULES`
of the room, and add a case table to the room of the same name under tests/conformance/cases/.
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
    "xla",
)
# The names of the modules below `runtime.kernels`, such as "array.gather".
KERNEL_MODULES: tuple[str, ...] = tuple(
    f"{room}.{module}"
    for room in KERNEL_ROOMS
    for module in importlib.import_module(f"runtime.kernels.{room}").MODULES
)


def kernel_defs() -> Iterator[KernelDef]:
    """Yield every row of every `KERNELS` table, in the order of `KERNEL_MODULES`."""
    for name in KERNEL_MODULES:
        yield from importlib.import_module(f"runtime.kernels.{name}").KERNELS
