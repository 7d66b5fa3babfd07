"""Kernels of the training ops, which apply the rules of `training_rules` to variables.

Each op exists for reference variables and, with the prefix Resource, for resource handles. The
sparse ops apply a rule only to the rows that `indices` names. A row that is named several times is
updated several times, once with each of its gradients, in order. The slots of an optimizer are the
variables that it keeps beside the trained variable, such as a sum of squared gradients.

Guarantees: a variable and its slots are updated together. No reader sees a part of an update.

TF: tensorflow/core/kernels/training_ops.cc, training_op_helpers.h
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InternalError, InvalidArgumentError
from runtime.framework import op_def_registry
from runtime.framework.op_kernel import Kernel, KernelDef, OpKernelContext
from runtime.framework.resources.variable import Variable, update_together
from runtime.framework.shapes import shape_text
from runtime.kernels.state import training_rules as rules
from runtime.kernels.state.resource_variables import find_variable

_GRADIENTS = ("grad", "delta")  # the names that ops give to their gradient input


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A training rule, the number of variables that it updates, and its variants."""

    apply: Callable[..., None]
    variables: int
    # the rule for rows of several elements; None means apply_to_row
    of_rows: Callable[..., None] | None = None
    sparse: Callable[..., None] | None = None  # the rule of sparse ops; None means apply

    @property
    def apply_to_row(self) -> Callable[..., None]:
        """The rule that sparse ops apply if each row has one element."""
        return self.sparse or self.apply

    @property
    def apply_to_rows(self) -> Callable[..., None]:
        """The rule that sparse ops apply if each row has several elements."""
        return self.of_rows or self.apply_to_row

    @property
    def attrs(self) -> tuple[str, ...]:
        """The names of the rule's keyword-only parameters, which are names of op attributes."""
        parameters = inspect.signature(self.apply).parameters.values()
        return tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)


# The part of an op's name after `Apply` → the rule that the op applies.
RULES = {
    "AdaMax": Rule(rules.ada_max, 3),
    "Adadelta": Rule(rules.adadelta, 3),
    "Adagrad": Rule(rules.adagrad, 2),
    "AdagradDA": Rule(rules.adagrad_da, 3, rules.adagrad_da_of_rows),
    "AdagradV2": Rule(rules.adagrad_v2, 2),
    "Adam": Rule(rules.adam, 3),
    "AdamWithAmsgrad": Rule(rules.adam_with_amsgrad, 4),
    "AddSign": Rule(rules.add_sign, 2),
    "CenteredRMSProp": Rule(rules.centered_rms_prop, 4, None, rules.sparse_centered_rms_prop),
    "Ftrl": Rule(rules.ftrl, 3),
    "FtrlV2": Rule(rules.ftrl_v2, 3),
    "GradientDescent": Rule(rules.gradient_descent, 1),
    "KerasMomentum": Rule(rules.keras_momentum, 2),
    "Momentum": Rule(rules.momentum, 2),
    "PowerSign": Rule(rules.power_sign, 2),
    "ProximalAdagrad": Rule(rules.proximal_adagrad, 2),
    "ProximalGradientDescent": Rule(rules.proximal_gradient_descent, 1),
    "RMSProp": Rule(rules.rms_prop, 3, None, rules.sparse_rms_prop),
}


def _input_names(op: str) -> list[str]:
    return [argument.name for argument in op_def_registry.look_up(op).input_arg]


def _check(
    names: Sequence[str],
    variables: Sequence[Variable],
    values: Sequence[np.ndarray],
    is_sparse: bool,
) -> tuple[int, ...]:
    """Check the shapes of slots, scalars and gradient, and return the shape of the variables.

    Raises FailedPreconditionError if a variable is uninitialized, InvalidArgumentError if a shape
    is wrong.
    """
    shape: tuple[int, ...] = ()
    for index, (name, variable) in enumerate(zip(names, variables, strict=False)):
        found = variable.shape
        if found is None:
            raise FailedPreconditionError(f"Attempting to use uninitialized value {variable.name}")
        if index == 0:
            shape = found
        elif found != shape:
            raise _shapes_differ(name, shape, found)
    for name, value in zip(names[len(variables) :], values, strict=True):
        if name == "indices" or (name in _GRADIENTS and is_sparse):
            continue
        if name in _GRADIENTS:
            if np.shape(value) != shape:
                raise _shapes_differ(name, shape, np.shape(value))
        elif np.ndim(value):
            raise InvalidArgumentError(f"{name} is not a scalar: {shape_text(np.shape(value))}")
    return shape


def _check_still(
    names: Sequence[str], shape: tuple[int, ...], arrays: Sequence[np.ndarray]
) -> None:
    """Raise InvalidArgumentError unless all `arrays` still have the `shape` that `_check` returned.

    Another step may have assigned a value of another shape in the meantime.
    """
    for name, array in zip(names, arrays, strict=False):
        if array.shape != shape:
            raise _shapes_differ(name, shape, array.shape)


def _shapes_differ(
    name: str, shape: tuple[int, ...], other: tuple[int, ...]
) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"var and {name} do not have the same shape{shape_text(shape)} {shape_text(other)}"
    )


# Ops whose gradient must have the rank of the variable. Other ops accept a gradient of any rank
# whose rows have the size of the variable's rows.
_SAME_RANKS = frozenset(
    f"{prefix}Apply{rule}"
    for prefix in ("Sparse", "ResourceSparse")
    for rule in ("Adagrad", "AdagradV2")
)

# Ops that check the signs of their scalars → the message if the learning rate is wrong.
_NO_FTRL_RATE = "lr is not a positive scalar (or zero if multiply_linear_by_lr is set)"
_RATE = {
    **dict.fromkeys(
        ("ApplyProximalAdagrad", "ResourceApplyProximalAdagrad"), "lr is not a positive scalar"
    ),
    **dict.fromkeys(
        ("SparseApplyProximalAdagrad", "ResourceSparseApplyProximalAdagrad"),
        "lr is not a positive scalar",
    ),
    **dict.fromkeys(("SparseApplyFtrl", "ResourceSparseApplyFtrl"), _NO_FTRL_RATE),
    **dict.fromkeys(("SparseApplyFtrlV2", "ResourceSparseApplyFtrlV2"), _NO_FTRL_RATE),
}


def _check_signs(
    op: str, names: Sequence[str], values: Sequence[np.ndarray], options: dict[str, Any]
) -> None:
    if op not in _RATE:
        return
    given = dict(zip(names, values, strict=True))
    rate, power = given["lr"], given.get("lr_power")
    zero_is_fine = bool(options.get("multiply_linear_by_lr"))
    wrong = {
        _RATE[op]: not (rate > 0 or (zero_is_fine and rate >= 0)),
        "l1 regularization strength is not a non-negative scalar": not given["l1"] >= 0,
        "l2 regularization strength is not a non-negative scalar": not given["l2"] >= 0,
        "lr_power is not a non-positive scalar": power is not None and not power <= 0,
        "l2 shrinkage regularization strength is not a non-negative scalar": (
            "l2_shrinkage" in given and not given["l2_shrinkage"] >= 0
        ),
    }
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise InvalidArgumentError(f"{message}: []")


def _apply(rule: Rule, op: str, is_resource: bool) -> Kernel:
    names = _input_names(op)
    attrs, count = rule.attrs, rule.variables

    def kernel(context: OpKernelContext, *inputs: Any) -> Variable | None:
        variables, values = _variables(context, inputs[:count], is_resource), inputs[count:]
        shape = _check(names, variables, values, False)
        options = {name: context.attr(name) for name in attrs}
        _check_signs(op, names[count:], values, options)

        def change(arrays: list[np.ndarray]) -> None:
            _check_still(names, shape, arrays)
            rule.apply(*arrays, *values, **options)

        update_together(variables, change)
        return None if is_resource else variables[0]

    return kernel


def _sparse_apply(rule: Rule, op: str, is_resource: bool) -> Kernel:
    names = _input_names(op)
    attrs, count = rule.attrs, rule.variables
    at = names.index("indices") - count
    gradient_at = names.index("grad") - count

    def kernel(context: OpKernelContext, *inputs: Any) -> Variable | None:
        variables, values = _variables(context, inputs[:count], is_resource), list(inputs[count:])
        shape = _check(names, variables, values, True)
        options = {name: context.attr(name) for name in attrs}
        _check_signs(op, names[count:], values, options)
        indices = values.pop(at)
        gradient = gradient_at - (at < gradient_at)
        grad = values[gradient]
        if op in _SAME_RANKS and shape and grad.ndim != len(shape):
            raise InvalidArgumentError("grad must have the same number of dimensions as var")
        _check_rows(shape, grad, indices)
        grad = grad.reshape(len(indices), *shape[1:])
        apply = rule.apply_to_rows if math.prod(shape[1:]) > 1 else rule.apply_to_row

        def change(arrays: list[np.ndarray]) -> None:
            _check_still(names, shape, arrays)
            # The rule works on copies of the rows, so that no row changes if the step is cancelled.
            named, rounds = _rounds(indices)
            rows = [array[named] for array in arrays]
            for places, positions in rounds:
                context.cancellation.check()
                values[gradient] = grad[positions]
                if len(places) == len(named):
                    apply(*rows, *values, **options)
                    continue
                picked = [row[places] for row in rows]
                apply(*picked, *values, **options)
                for row, changed in zip(rows, picked, strict=True):
                    row[places] = changed
            for array, changed in zip(arrays, rows, strict=True):
                array[named] = changed

        update_together(variables, change)
        return None if is_resource else variables[0]

    return kernel


def _variables(
    context: OpKernelContext, inputs: Sequence[Any], is_resource: bool
) -> Sequence[Variable]:
    if not is_resource:
        return inputs
    found = [find_variable(context, each) for each in inputs]
    if None in found:
        raise InternalError("Invalid variable reference.")
    return [variable for variable in found if variable is not None]


def _check_rows(shape: tuple[int, ...], grad: np.ndarray, indices: np.ndarray) -> None:
    if not shape:
        raise InvalidArgumentError("var must be at least 1 dimensional")
    if indices.ndim != 1:
        raise InvalidArgumentError("indices must be one-dimensional")
    for axis in range(1, len(shape)):
        if axis >= grad.ndim or grad.shape[axis] != shape[axis]:
            raise InvalidArgumentError(f"var and grad must match in dimension {axis}")
    if not grad.ndim or len(grad) != len(indices):
        raise InvalidArgumentError("grad must be the same size as indices in the first dimension.")
    if grad[:1].size > math.prod(shape[1:]):
        raise InvalidArgumentError(
            f"var and grad must have rows of one size, got shapes {shape_text(shape)} and "
            f"{shape_text(grad.shape)}"
        )
    outside = (indices < 0) | (indices >= shape[0])
    if outside.any():
        offset = int(outside.argmax())
        raise InvalidArgumentError(
            f"Index {indices[offset]} at offset {offset} in indices is out of range"
        )


def _rounds(indices: np.ndarray) -> tuple[np.ndarray, Iterator[tuple[np.ndarray, np.ndarray]]]:
    """Split an update of the rows `indices` into rounds, each of which contains a row at most once.

    Return the distinct rows in ascending order, and an iterator of the rounds. A round is (indices
    into the distinct rows, positions in `indices`), both `[k]`. If a row is named several times,
    its positions keep their order, one per round. The time is O(n log n).
    """
    order = np.argsort(indices, kind="stable")
    ranked = indices[order]
    is_first = np.ones(len(ranked), bool)
    is_first[1:] = ranked[1:] != ranked[:-1]
    starts = np.flatnonzero(is_first)
    if 0 < len(starts) == len(ranked):  # no row is named twice, so one round is enough
        return ranked, iter([(starts, order)])
    places = np.cumsum(is_first) - 1
    # for each index: how many earlier indices name the same row
    turns = np.arange(len(ranked)) - starts[places]
    by_turn = np.argsort(turns, kind="stable")
    ends = np.cumsum(np.bincount(turns)).tolist()
    spans = (by_turn[start:end] for start, end in itertools.pairwise([0, *ends]))
    return ranked[starts], ((places[span], order[span]) for span in spans)


def _kernels() -> Iterator[KernelDef]:
    for name, rule in RULES.items():
        for prefix, make in (("", _apply), ("Sparse", _sparse_apply)):
            for op in (f"{prefix}Apply{name}", f"Resource{prefix}Apply{name}"):
                if op_def_registry.find(op) is not None:
                    yield KernelDef(op, make(rule, op, op.startswith("Resource")))


KERNELS = tuple(_kernels())
