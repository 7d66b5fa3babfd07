"""The table of KernelDefs, and the search for the kernel of a node.

Each kernel module ends with a table `KERNELS`; the tuple `runtime.kernels.KERNEL_MODULES` lists
these modules. Registering two kernels for the same op, device and types raises AlreadyExistsError.

TF: tensorflow/core/framework/op_kernel.cc (KernelRegistry, FindKernelDef)
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from runtime.foundation.errors import AlreadyExistsError, InvalidArgumentError
from runtime.framework import op_packages
from runtime.framework.attr_value import AttributeValue
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Kernel, KernelDef, MemoryNeed, NodeView, signature


class KernelRegistry:
    """KernelDefs by op. It is filled before the first session and then only read, without a lock.

    `is_built_in` is true if the registry holds exactly the kernels of `runtime.kernels`, which
    every process that runs this code has.
    """

    is_built_in = False

    def __init__(
        self, kernels: Iterable[KernelDef] = (), fallback: KernelRegistry | None = None
    ) -> None:
        self._by_op: dict[str, list[KernelDef]] = {}
        self._fallback = fallback  # this registry is searched if no kernel of `self` fits
        for kernel in kernels:
            self.register(kernel)

    def register(self, kernel: KernelDef) -> None:
        """Add `kernel`.

        Raises AlreadyExistsError if a kernel of the same op and device accepts some of its types.
        """
        same_op = self._by_op.setdefault(kernel.op, [])
        for other in same_op:
            if other.device_type == kernel.device_type and _overlap(other, kernel):
                raise AlreadyExistsError(
                    f"Op {kernel.op} on {kernel.device_type} has two kernels for the same types: "
                    f"{_describe(other)} and {_describe(kernel)}"
                )
        same_op.append(kernel)

    def has(self, op: str) -> bool:
        """Return whether any kernel of `op` is registered."""
        return op in self._by_op or (self._fallback is not None and self._fallback.has(op))

    @property
    def ops(self) -> list[str]:
        """The names of the ops that have a kernel, sorted."""
        inherited = set() if self._fallback is None else set(self._fallback.ops)
        return sorted(inherited | self._by_op.keys())

    @property
    def custom_ops(self) -> frozenset[str]:
        """The ops that have a kernel which is not built in."""
        if self.is_built_in:
            return frozenset()
        inherited = frozenset() if self._fallback is None else self._fallback.custom_ops
        return inherited | self._by_op.keys()

    def kernels_of(self, op: str) -> list[KernelDef]:
        """Return the kernels of `op` in the order in which `find` tries them."""
        inherited = [] if self._fallback is None else self._fallback.kernels_of(op)
        return [*self._by_op.get(op, ()), *inherited]

    def find(self, node: NodeView, device_type: str = "CPU") -> KernelDef:
        """Return the first kernel that fits the op and attributes of `node` on `device_type`.

        Raises InvalidArgumentError with TensorFlow's text if no kernel fits.
        """
        for kernel in self.kernels_of(node.op):
            if kernel.device_type == device_type and _fits(kernel, node):
                return kernel
        raise InvalidArgumentError(self._no_kernel_message(node))

    def _no_kernel_message(self, node: NodeView) -> str:
        rows = self.kernels_of(node.op)
        listed = "".join(f"\n  {_describe(kernel)}" for kernel in rows)
        _, fault = op_packages.kernels_of_package(node.op)
        return (
            f"No OpKernel was registered to support Op '{node.op}' used by "
            f"{{{{node {node.name}}}}} with these attrs: [{_attrs_of(node)}]\n"
            f"Registered devices: [CPU]\nRegistered kernels:"
            f"{listed or chr(10) + '  <no registered kernels>'}\n{fault}"
        )


def bind(kernel: KernelDef, node: NodeView) -> Kernel:
    """Return the kernel's function with the node's attributes bound to its keyword parameters."""
    of_node = getattr(kernel.function, "of_node", None)  # dataset kernels record their node
    function = kernel.function if of_node is None else functools.partial(of_node, node)
    return _with_attrs(function, kernel.attr_names, node)


def bind_in_place(kernel: KernelDef, node: NodeView) -> Kernel | str | None:
    """Return the kernel's `in_place`; if it is a function, bind the node's attributes to it."""
    if kernel.in_place is None or isinstance(kernel.in_place, str):
        return kernel.in_place
    return _with_attrs(kernel.in_place, kernel.attr_names, node)


def bind_memory(kernel: KernelDef, node: NodeView) -> tuple[MemoryNeed, bool] | None:
    """Return (`kernel.memory` with the node's attributes bound, whether it takes the context).

    Returns None if the need is a multiple of the inputs.
    """
    if kernel.memory is None or isinstance(kernel.memory, int):
        return None
    needs_context, names = signature(kernel.memory)
    return _with_attrs(kernel.memory, names, node), needs_context


def _with_attrs(function: Kernel, names: tuple[str, ...], node: NodeView) -> Kernel:
    if not names:
        return function
    attrs: Mapping[str, AttributeValue] = {name: node.attr(name) for name in names}
    return functools.partial(function, **attrs)


def _fits(kernel: KernelDef, node: NodeView) -> bool:
    for attr, allowed in kernel.constraints.items():
        value = node.attr(attr)
        types = value if isinstance(value, tuple) else (value,)
        if any(each not in allowed for each in types):
            return False
    return True


def _overlap(one: KernelDef, other: KernelDef) -> bool:
    for attr in one.constraints.keys() & other.constraints.keys():
        if not set(one.constraints[attr]) & set(other.constraints[attr]):
            return False
    return True


def _describe(kernel: KernelDef) -> str:
    limits = "; ".join(
        f"{attr} in [{', '.join(map(_show, allowed))}]"
        for attr, allowed in kernel.constraints.items()
    )
    return f"device='{kernel.device_type}'" + (f"; {limits}" if limits else "")


def _attrs_of(node: NodeView) -> str:
    attrs = getattr(node, "attr_values", None)
    if attrs is None:
        return ""
    return ", ".join(f"{key}={_show(value)}" for key, value in sorted(attrs().items()))


def _show(value: object) -> str:
    """Return the value of an attribute as TensorFlow writes it (TF: SummarizeAttrValue)."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_show, value))}]"
    if isinstance(value, DataType):
        return f"DT_{value.name}"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
