"""Gradient functions of the branches of version 1: Switch and Merge.

The way back of a Switch is a Merge of what comes back through the branches, and the way back of a
Merge is a Switch to the branch that was taken. Loops of version 1 are not differentiated.

TF: tensorflow/python/ops/control_flow_grad.py
"""

from __future__ import annotations

from runtime.client.framework.operation import Operation, Tensor
from runtime.client.ops import op_function
from runtime.client.ops.control_flow import merge, switch
from runtime.client.ops.gradients.gradient_registry import Derivation


def _switch(operation: Operation, of_false: Tensor, of_true: Tensor) -> list[Tensor | None]:
    """Raise LookupError if the operation belongs to a loop."""
    pred = operation.inputs[1]
    if pred.op.type == "LoopCond":
        raise LookupError(
            f"No gradient defined for operation '{operation.name}': it belongs to a loop of "
            "version 1; those of `while_loop` are differentiated"
        )
    found, _ = merge([switch(of_false, pred)[0], switch(of_true, pred)[1]])
    return [found, None]


def _merge(operation: Operation, grad: Tensor, _: Tensor | None) -> list[Tensor]:
    taken = operation.outputs[1]
    return [
        switch(grad, op_function("Equal")(taken, index))[1]
        for index in range(len(operation.inputs))
    ]


BRANCH_GRADIENTS: dict[str, Derivation] = {
    "Switch": Derivation(_switch),
    "RefSwitch": Derivation(_switch),
    "Merge": Derivation(_merge),
    "RefMerge": Derivation(_merge),
}
