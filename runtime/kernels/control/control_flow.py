"""Control flow: functional ops (If, Case, While, For, function calls), Switch and similar ops.

Branches and bodies are functions of the graph's library. While and For check before every iteration
whether the step was cancelled. Merge, Enter, Exit, NextIteration and LoopCond have no kernel: the
dataflow executor implements them.

TF: tensorflow/core/kernels/functional_ops.cc, control_flow_ops.cc
"""

from __future__ import annotations

import itertools

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, OpError
from runtime.framework.allocation import check_allocation
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import DEAD, Deferred, KernelDef, OpKernelContext
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resources.variable import Variable
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import unbox


def as_condition(value: TensorValue) -> bool:
    """Return the truth value of a tensor: the value of a scalar, otherwise whether it is non-empty.

    A scalar string is true if it has at least one byte.
    """
    array = np.asarray(value)
    if array.ndim:
        return array.size > 0
    if array.dtype == object:
        return len(array[()]) > 0
    return bool(array)


def if_op(
    context: OpKernelContext,
    condition: np.ndarray,
    *inputs: TensorValue,
    then_branch: NameAttrList,
    else_branch: NameAttrList,
) -> list[TensorValue] | Deferred:
    """If: call `then_branch` if `condition` is true, otherwise `else_branch`, with `inputs`."""
    return context.start_function(then_branch if as_condition(condition) else else_branch, *inputs)


def case(
    context: OpKernelContext,
    branch_index: np.ndarray,
    *inputs: TensorValue,
    branches: tuple[NameAttrList, ...],
) -> list[TensorValue] | Deferred:
    """Case: call the function at `branch_index` in `branches` with `inputs`.

    If `branch_index` is out of range, the last function is called.
    """
    index = int(branch_index)
    if not 0 <= index < len(branches):
        index = len(branches) - 1
    return context.start_function(branches[index], *inputs)


def while_op(
    context: OpKernelContext, *inputs: TensorValue, cond: NameAttrList, body: NameAttrList
) -> list[TensorValue] | Deferred:
    """While: call `body` on the loop variables as long as `cond` returns true for them."""
    if context.step.may_wait(cond) or context.step.may_wait(body):
        return _WaitingLoop(context, cond, body).start(list(inputs))
    values = list(inputs)
    call, cancellation = context.step.call_function, context.cancellation
    while True:
        cancellation.check()
        if not _condition_value(call(cond, values)):
            return values
        values = _checked_results(values, call(body, values))


def _condition_value(outcome: list[TensorValue]) -> bool:
    if len(outcome) != 1:
        raise InvalidArgumentError(
            f"Expected a single scalar return value from WhileOp cond, got {len(outcome)} tensors."
        )
    return as_condition(outcome[0])


def _checked_results(values: list[TensorValue], results: list[TensorValue]) -> list[TensorValue]:
    if len(results) != len(values):
        raise InvalidArgumentError(
            f"While loop body returned {len(results)} arguments. Expected: {len(values)}."
        )
    return results


class _WaitingLoop:
    """A While whose functions may wait: the completion of each call starts the next call."""

    def __init__(self, context: OpKernelContext, cond: NameAttrList, body: NameAttrList) -> None:
        self._step = context.step
        self._cond = cond
        self._body = body
        self._values: list[TensorValue] = []
        self._is_condition_next = True  # if false, `body` is called next
        self._is_finished = False
        self._result = Deferred()

    def start(self, values: list[TensorValue]) -> Deferred:
        """Start the first iteration; return a Deferred of the final loop variables."""
        self._values = values
        self._continue()
        return self._result

    def _continue(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        """Start the next function; return whether it has completed and another one may start.

        A function that does not wait completes before `when_done` returns. If the callback `ended`
        started the next function, the call stack would grow with every iteration.
        """
        # The callback and this method each take a number; the second of them continues the loop.
        arrivals = itertools.count()

        def ended(deferred: Deferred) -> None:
            self._process_result(deferred)
            if next(arrivals) and not self._is_finished:
                self._continue()

        function = self._cond if self._is_condition_next else self._body
        try:
            self._step.cancellation.check()
            self._step.start_function(function, self._values).when_done(ended)
        except OpError as error:
            self._result.set_error(error)
            return False
        return next(arrivals) > 0 and not self._is_finished

    def _process_result(self, deferred: Deferred) -> None:
        """Process a function's result, which is the condition's value or the new loop variables."""
        try:
            if deferred.error is not None:
                raise deferred.error
            if not self._is_condition_next:
                self._values = _checked_results(self._values, deferred.value)
            elif not _condition_value(deferred.value):
                self._is_finished = True
                self._result.set_value(self._values)
            self._is_condition_next = not self._is_condition_next
        except OpError as error:
            self._is_finished = True
            self._result.set_error(error)


def for_op(
    context: OpKernelContext,
    start: np.ndarray,
    limit: np.ndarray,
    delta: np.ndarray,
    *inputs: TensorValue,
    body: NameAttrList,
) -> list[TensorValue]:
    """For: call `body` with i and the loop variables for each i in range(start, limit, delta)."""
    for name, given in (("start", start), ("limit", limit), ("delta", delta)):
        if np.ndim(given):
            raise InvalidArgumentError(f"{name} must be a scalar, but {shape_text(given.shape)}")
    first, end, step = int(start), int(limit), int(delta)
    if not (first == end or (first < end and step > 0) or (first > end and step < 0)):
        raise InvalidArgumentError(f"Invalid start/limit/delta: {first} {end} {step}")
    values = list(inputs)
    for number in range(first, end, step or 1):
        context.cancellation.check()
        results = context.call_function(body, np.int32(number), *values)
        if len(results) != len(values):
            raise InvalidArgumentError(
                f"For loop body returned {len(results)} arguments. Expected: {len(values)}"
            )
        values = results
    return values


def partitioned_call(
    context: OpKernelContext, *inputs: TensorValue, f: NameAttrList
) -> list[TensorValue] | Deferred:
    """PartitionedCall, StatefulPartitionedCall: call the function `f` with `inputs`.

    Only recursive calls reach this kernel, because all other calls are inlined.
    """
    return context.start_function(f, *inputs)


def symbolic_gradient(
    context: OpKernelContext,
    *inputs: TensorValue,
    f: NameAttrList,
    Tout: tuple[DataType, ...],  # noqa: N803 - the attribute's name
) -> list[TensorValue] | Deferred:
    """SymbolicGradient: call the gradient of the function `f` with `inputs`.

    Only recursive calls reach this kernel, because all other calls are inlined.
    """
    return context.start_function(NameAttrList("SymbolicGradient", {"f": f, "Tout": Tout}), *inputs)


def switch(data: TensorValue, pred: np.ndarray) -> tuple[TensorValue, TensorValue]:
    """Switch, RefSwitch: return `data` as the output that `pred` selects, DEAD as the other output.

    Returns (output_false, output_true). DEAD marks an output that is not taken.
    """
    array = np.asarray(pred)
    if array.ndim:
        raise InvalidArgumentError(
            f"The second input must be a scalar, but it has shape {list(array.shape)}"
        )
    return (DEAD, data) if bool(array) else (data, DEAD)


def switch_n(data: TensorValue, output_index: np.ndarray, *, num_outs: int) -> list[TensorValue]:
    """_SwitchN: return `data` as the output at `output_index`, DEAD as every other output.

    If `output_index` is out of range, the last of the `num_outs` outputs gets the data. DEAD marks
    an output that is not taken.
    """
    index = int(output_index)
    if not 0 <= index < num_outs:
        index = num_outs - 1
    return [data if position == index else DEAD for position in range(num_outs)]


def ref_select(index: np.ndarray, *variables: Variable) -> Variable:
    """RefSelect: return the reference variable at `index` in `variables`."""
    if np.ndim(index):
        raise InvalidArgumentError(
            f"Index must be a scalar, but it has shape {shape_text(np.shape(index))}"
        )
    if not 0 <= index < len(variables):
        raise InvalidArgumentError(
            f"Index must be in the range [0, {len(variables)}) but got {int(index)}"
        )
    return variables[int(index)]


def no_op() -> None:
    """ControlTrigger: do nothing, because the node exists only for its control edges."""


def fake_param(*, dtype: DataType, shape: PartialShape) -> TensorValue:
    """FakeParam: return a tensor in the place of one that nothing reads; −1 in `shape` becomes 0.

    It always holds zeros, empty strings or empty handles, so that no freed memory is exposed.
    """
    sizes = [max(size, 0) for size in shape or ()]
    check_allocation(sizes, dtype.numpy)
    if dtype is DataType.STRING:
        return np.full(sizes, b"", object)
    if dtype is DataType.RESOURCE:
        result = np.empty(sizes, object)
        result[...] = ResourceHandle("", "", "")
        return unbox(result)
    return unbox(np.zeros(sizes, dtype.numpy))


KERNELS = (
    KernelDef("If", if_op),
    KernelDef("StatelessIf", if_op),
    KernelDef("Case", case),
    KernelDef("StatelessCase", case),
    KernelDef("While", while_op),
    KernelDef("StatelessWhile", while_op),
    KernelDef("FakeParam", fake_param),
    KernelDef("For", for_op),
    KernelDef("PartitionedCall", partitioned_call),
    KernelDef("StatefulPartitionedCall", partitioned_call),
    KernelDef("SymbolicGradient", symbolic_gradient),
    KernelDef("Switch", switch),
    KernelDef("RefSelect", ref_select),
    KernelDef("RefSwitch", switch),
    KernelDef("_SwitchN", switch_n),
    KernelDef("ControlTrigger", no_op),
)
