"""ItemMemory: the memory checks of one run of the dataflow executor.

It makes the checks of `memory_checks.py`. Once a run has met a large value, all its nodes are
checked, as in `memory_watch.py`.

Guarantees: thread-safe; what is set aside for a kernel is given back when it has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.executors.dataflow_graph import Item
from runtime.executors.memory_checks import MemoryCheck
from runtime.executors.memory_watch import MemoryWatch, checked_need, note_kept
from runtime.executors.step import EdgeValue, Step
from runtime.framework.memory_account import bytes_of
from runtime.framework.op_kernel import Deferred, Kernel, KernelResult, OpKernelContext


class ItemMemory:
    """The memory of one run. `large` is the size above which a value is counted, in bytes."""

    def __init__(self, step: Step, large: int) -> None:
        """`step` must have an account."""
        assert step.memory is not None
        self._account = step.memory
        self._step = step
        self._large = large
        self._is_watched = False  # set to true only, so it needs no lock

    def call(
        self,
        kernel: Kernel,
        context: OpKernelContext | None,
        item: Item,
        values: Sequence[EdgeValue],
    ) -> KernelResult:
        """Call the kernel of `item`; raises ResourceExhaustedError if memory does not suffice.

        `context` is None if the kernel takes none. The outputs of a Deferred are counted when it
        completes.
        """
        check = item.memory
        assert check is not None
        watch = self._begin(check, item, values)
        try:
            result = kernel(*values) if context is None else kernel(context, *values)
        finally:
            if watch is not None:
                watch.end()
        if check.keeps:
            note_kept(self._step, self._large, values)
        if not isinstance(result, Deferred):
            self.add_outputs(item, watch, result)
        return result

    def _begin(
        self, check: MemoryCheck, item: Item, values: Sequence[EdgeValue]
    ) -> MemoryWatch | None:
        """Return the watch of the kernel's call; None if all its inputs are small and it is too."""
        looks = check.is_grower or check.joined or check.sources or check.string_sources
        if not (self._is_watched or looks):
            return None
        context = OpKernelContext(item.node, self._step)
        need = checked_need(check, context, values)
        if need <= self._large and not self._has_large(values):
            return None
        self._is_watched = True
        watch = MemoryWatch(self._account, self._large)
        watch.begin_node(check.name, need, values)
        return watch

    def _has_large(self, values: Sequence[EdgeValue]) -> bool:
        return any(bytes_of(each) > self._large for each in values)

    def add_outputs(self, item: Item, watch: MemoryWatch | None, result: KernelResult) -> None:
        """Count what the kernel of `item` has made; without a `watch`, nothing was foreseen."""
        check = item.memory
        if check is None or (watch is None and not (check.looks_after or self._is_watched)):
            return
        outputs = (result,) if item.node.info.has_single_output else (result or ())
        if watch is None:
            if not self._has_large(outputs):
                return
            self._is_watched = True
            watch = MemoryWatch(self._account, self._large)
            watch.begin_node(check.name, 0, ())
        if check.makes:
            watch.end_node(outputs)
