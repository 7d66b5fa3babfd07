"""Control flow: functional (If, Case, While and calls of functions) and Switch of version 1.

The branches and bodies are functions of the graph's library; a While checks the step's
cancellation before every iteration. Merge, Enter, Exit, NextIteration and LoopCond have no kernel:
the dataflow executor does their work.

TF: tensorflow/core/kernels/functional_ops.cc, control_flow_ops.cc
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.op_kernel import DEAD, KernelDef, OpKernelContext


def as_condition(value: Any) -> bool:
    """The truth of a tensor: a scalar by its value, anything else by being non-empty."""
    array = np.asarray(value)
    if array.ndim:
        return array.size > 0
    if array.dtype == object:
        return len(array[()]) > 0
    return bool(array)


def if_op(
    context: OpKernelContext,
    condition: Any,
    *inputs: Any,
    then_branch: NameAttrList,
    else_branch: NameAttrList,
) -> list[Any]:
    """One of two functions on the same inputs."""
    return context.call_function(then_branch if as_condition(condition) else else_branch, *inputs)


def case(
    context: OpKernelContext, branch_index: Any, *inputs: Any, branches: tuple[NameAttrList, ...]
) -> list[Any]:
    """One of several functions; an index out of range takes the last."""
    index = int(branch_index)
    if not 0 <= index < len(branches):
        index = len(branches) - 1
    return context.call_function(branches[index], *inputs)


def while_op(
    context: OpKernelContext, *inputs: Any, cond: NameAttrList, body: NameAttrList
) -> list[Any]:
    """Run `body` on the loop variables as long as `cond` of them is true."""
    values = list(inputs)
    call, cancellation = context.step.call_function, context.cancellation
    while True:
        cancellation.check()
        outcome = call(cond, values)
        if len(outcome) != 1:
            raise InvalidArgumentError(
                f"While needs a condition of one output, {cond.name} has {len(outcome)}"
            )
        if not as_condition(outcome[0]):
            return values
        results = call(body, values)
        if len(results) != len(values):
            raise InvalidArgumentError(
                f"The body {body.name} of a While takes {len(values)} values but gives "
                f"{len(results)}"
            )
        values = results


def for_op(
    context: OpKernelContext, start: Any, limit: Any, delta: Any, *inputs: Any, body: NameAttrList
) -> list[Any]:
    """Run `body` on (i, loop variables) for i in range(start, limit, delta)."""
    if int(delta) == 0:
        raise InvalidArgumentError("For needs a delta other than 0")
    values = list(inputs)
    for number in range(int(start), int(limit), int(delta)):
        context.cancellation.check()
        values = context.call_function(body, np.int32(number), *values)
    return values


def partitioned_call(context: OpKernelContext, *inputs: Any, f: NameAttrList) -> list[Any]:
    """Call a function (one that calls itself: others are inlined)."""
    return context.call_function(f, *inputs)


def switch(data: Any, pred: Any) -> tuple[Any, Any]:
    """(output_false, output_true): the data on one side, deadness on the other."""
    array = np.asarray(pred)
    if array.ndim:
        raise InvalidArgumentError(
            f"The second input must be a scalar, but it has shape {list(array.shape)}"
        )
    return (DEAD, data) if bool(array) else (data, DEAD)


def switch_n(data: Any, output_index: Any, *, num_outs: int) -> list[Any]:
    """The data at one of `num_outs` outputs; an index out of range takes the last."""
    index = int(output_index)
    if not 0 <= index < num_outs:
        index = num_outs - 1
    return [data if position == index else DEAD for position in range(num_outs)]


def no_op() -> None:
    """Nothing: the node orders others."""


KERNELS = (
    KernelDef("If", if_op),
    KernelDef("StatelessIf", if_op),
    KernelDef("Case", case),
    KernelDef("StatelessCase", case),
    KernelDef("While", while_op),
    KernelDef("StatelessWhile", while_op),
    KernelDef("For", for_op),
    KernelDef("PartitionedCall", partitioned_call),
    KernelDef("StatefulPartitionedCall", partitioned_call),
    KernelDef("Switch", switch),
    KernelDef("RefSwitch", switch),
    KernelDef("_SwitchN", switch_n),
    KernelDef("ControlTrigger", no_op),
)
