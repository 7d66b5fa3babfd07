"""MemoryWatch: counts the memory of a run that has met a large value.

`memory_checks.py` decides which nodes look for large values. The first that finds one makes a
watch, and from then on every node of the run is checked before it is called and counted after.

Guarantees: a watch belongs to one run in one thread; `end` gives back what is set aside for a
kernel, also if it has raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from runtime.executors.memory_checks import UNCOUNTED_BYTES, MemoryCheck
from runtime.executors.step import EdgeValue, Step
from runtime.foundation.errors import InvalidArgumentError, OpError, UnimplementedError
from runtime.framework.allocation import check_bytes, tensor_limit
from runtime.framework.memory_account import MemoryAccount, bytes_held_by, bytes_of, owner_of
from runtime.framework.op_kernel import OpKernelContext
from runtime.framework.tensor_value import TensorValue


class MemoryWatch:
    """The memory of one run. `large` is the size above which an array is counted, in bytes."""

    __slots__ = ("_account", "_large", "_name", "_need", "_sources")

    def __init__(self, account: MemoryAccount, large: int) -> None:
        self._account = account
        self._large = large
        self._name = ""  # of the node that runs
        self._need = 0  # bytes set aside for the kernel that runs
        self._sources: frozenset[int] = frozenset()  # ids of the owners of its inputs

    def begin_node(self, name: str, need: int, inputs: Iterable[TensorValue]) -> None:
        """Set `need` bytes aside for the kernel of node `name`, which is called with `inputs`.

        Raises ResourceExhaustedError if there is not that much left.
        """
        self.end()
        self._name = name
        self._sources = frozenset(
            id(owner_of(each)) for each in inputs if getattr(each, "nbytes", 0) > self._large
        )
        if need > self._large:
            self._account.reserve(need)
            self._need = need

    def end_node(self, outputs: Iterable[TensorValue]) -> None:
        """Count the outputs of the kernel that `begin_node` was called for.

        An output that is an input, or a view of one, is not new. Raises ResourceExhaustedError if
        there is more than there may be, because a bound was too low or small, or if an output is
        larger than one tensor may be.
        """
        need = self._need
        self.end()
        try:
            for value in outputs:
                if not isinstance(value, np.ndarray):
                    continue
                owner = owner_of(value)
                if id(owner) in self._sources:
                    continue
                if owner.nbytes > self._large or owner.dtype.hasobject:
                    size = bytes_held_by(value, need or None)
                    check_bytes(value.shape, value.dtype, size)
                    if owner is not value:
                        size = bytes_held_by(owner, need or None)
                    self._account.hold(owner, size)
        except OpError as error:
            error.with_node(self._name)
            raise

    def end(self) -> None:
        """Give back what is set aside."""
        if self._need:
            need, self._need = self._need, 0
            self._account.release(need)


def need_of(check: MemoryCheck | None, inputs: Sequence[TensorValue]) -> int:
    """Return the bytes that a kernel may need for `inputs`; the context, if any, is not counted.

    If the bound can't be computed because the inputs are wrong, it is that of a kernel without one:
    the kernel raises the error. Raises ResourceExhaustedError if the kernel joins its inputs and
    the output would be larger than one tensor may be.
    """
    if check is None:
        return 0
    need = _bound(check, inputs)
    if check.check_join is not None and need > tensor_limit():
        try:
            check.check_join(*inputs)
        except OpError:
            raise
        except Exception:
            pass
    return need


def _bound(check: MemoryCheck, inputs: Sequence[TensorValue]) -> int:
    if check.need is not None:
        try:
            return int(check.need(*inputs))
        except (InvalidArgumentError, UnimplementedError):
            pass  # the kernel has its own order of checks
        except OpError:
            raise
        except Exception:
            pass
    return check.multiple * sum(map(bytes_of, inputs)) if check.multiple else 0


def checked_need(
    check: MemoryCheck | None, context: OpKernelContext, inputs: Sequence[TensorValue]
) -> int:
    """Return `need_of` with the context if the bound takes it."""
    if check is not None and check.needs_context:
        return need_of(check, (context, *inputs))
    return need_of(check, inputs)


# The functions that generated code calls. `s` is the list of values of a run, whose last element is
# the run's watch or None. Each returns what is then true in the run: see `plan_text.py`.


def watch_node(
    s: list[EdgeValue],
    step: Step,
    large: int,
    check: MemoryCheck,
    made: Sequence[TensorValue],
    *inputs: EdgeValue,
) -> object:
    """Check the memory of a node before it is called; `made` is what the one before has made."""
    cancelled = step.cancellation.error
    if cancelled:
        step.cancellation.check()
    watch: MemoryWatch | None = s[-1]
    try:
        if watch is not None:
            watch.end_node(made)
        need = need_of(check, inputs)
        if watch is None:
            if need <= _least_need(check, large) and not _has_large(check, inputs, large):
                if check.is_of_shapes:
                    check.known = _shapes(check, inputs)
                return cancelled
            watch = s[-1] = _new_watch(step, large)
        watch.begin_node(check.name, need, inputs)
    except OpError as error:
        error.with_node(check.name)
        raise
    return watch


def watch_outputs(
    s: list[EdgeValue], step: Step, large: int, check: MemoryCheck, outputs: Sequence[TensorValue]
) -> object:
    """Begin to watch if an output is large that was not foreseen; count it if it is new."""
    watch: MemoryWatch | None = s[-1]
    if watch is None:
        if not any(bytes_of(each) > large for each in outputs):
            return step.cancellation.error
        watch = s[-1] = _new_watch(step, large)
        watch.begin_node(check.name, 0, ())
    if check.makes:
        watch.end_node(outputs)
    return watch


def watch_end(s: list[EdgeValue], made: Sequence[TensorValue]) -> None:
    """Count what the last node of a part has made."""
    watch: MemoryWatch | None = s[-1]
    if watch is not None:
        watch.end_node(made)


def note_kept(step: Step, large: int, inputs: Sequence[TensorValue]) -> None:
    """Note that a kernel may have stored `inputs`; what is large is counted already."""
    size = 0
    for value in inputs:
        bytes_here = bytes_of(value)
        if bytes_here <= large:
            size += bytes_here
    account = step.memory
    assert account is not None
    account.note_kept(size)


def _new_watch(step: Step, large: int) -> MemoryWatch:
    assert step.memory is not None
    return MemoryWatch(step.memory, large)


def _shapes(check: MemoryCheck, inputs: Sequence[EdgeValue]) -> object:
    """Return what generated code compares with `check.known`: a shape, or a tuple of several."""
    first = 1 if check.needs_context else 0
    positions = range(2) if check.is_broadcast else check.varying
    shapes = tuple(inputs[position + first].shape for position in positions)
    return shapes[0] if len(shapes) == 1 else shapes


def _least_need(check: MemoryCheck, large: int) -> int:
    """Return the need above which a node is checked although no value is large."""
    return max(large, UNCOUNTED_BYTES) if check.is_grower else large


def _has_large(check: MemoryCheck, inputs: Sequence[EdgeValue], large: int) -> bool:
    positions = (*check.sources, *check.string_sources)
    return any(bytes_of(inputs[position]) > large for position in positions)
