"""The optimisers of `tf.compat.v1.train`.

Each is defined by a training op, the slots of that op, and its hyperparameters.

TF: tensorflow/python/training/gradient_descent.py, momentum.py, adam.py, rmsprop.py, adagrad.py,
ftrl.py, adadelta.py
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.operation import Operand, Operation, Tensor
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor, group
from runtime.client.ops.indexed_slices import IndexedSlices
from runtime.client.ops.initializers import (
    Initializer,
    constant_initializer,
    ones_initializer,
    zeros_initializer,
)
from runtime.client.ops.state_ops import scatter_add
from runtime.client.ops.variables import Variable
from runtime.client.training.optimizer import Optimizer
from runtime.framework import op_def_registry

# A number or a tensor, or a function that returns one and is called when the updates are built.
Hyperparameter: TypeAlias = Operand | Callable[[], Operand]

# {input of a training op: value}: a Variable for the variable and its slots, else a Tensor.
Inputs: TypeAlias = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Slot:
    """A slot of an optimiser.

    `name` is its name for `get_slot`, `op_input` the input of the training op to which it is
    passed.
    """

    name: str
    op_input: str
    initializer: Initializer = zeros_initializer()  # noqa: RUF009 # a function, immutable
    op_name: str | None = None  # part of the slot variable's name; None: the optimiser's


class TrainingOpOptimizer(Optimizer):
    """Updates variables by the op `[Resource][Sparse]Apply<kind>`.

    The op's inputs are found by their names. Hyperparameters may be tensors, or functions that
    return tensors; they are cast to the type of the variable.
    """

    def __init__(
        self,
        kind: str,
        slots: Sequence[Slot],
        numbers: Mapping[str, Hyperparameter],
        use_locking: bool,
        name: str,
        **attrs: object,
    ) -> None:
        """Take the `slots` and the hyperparameters `numbers`, the inputs of the op by name."""
        super().__init__(use_locking, name)
        self._kind = kind
        self._slot_specs = tuple(slots)
        self._numbers = dict(numbers)
        self._tensors: dict[str, Tensor] = {}
        self._op_attrs = {"use_locking": use_locking, **attrs}

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:
            for slot in self._slot_specs:
                name = slot.op_name or self._name
                self._slot(variable, slot.name, name, slot.initializer)

    def _prepare(self) -> None:
        self._tensors = {
            name: convert_to_tensor(value() if callable(value) else value, name=name)
            for name, value in self._numbers.items()
        }

    def _number(self, name: str, var: Variable) -> Tensor:
        """Return the hyperparameter `name`, cast to the type of `var`."""
        tensor = self._tensors[name]
        if tensor.dtype is var.dtype:
            return tensor
        cast: Tensor = op_function("Cast")(tensor, DstT=var.dtype)
        return cast

    def _inputs(self, var: Variable) -> Inputs:
        """Return {input name: value} of the op, without the gradient."""
        slots = {slot.op_input: self.get_slot(var, slot.name) for slot in self._slot_specs}
        numbers = {name: self._number(name, var) for name in self._tensors}
        return {"var": var, **slots, **numbers}

    def _training_op(self, var: Variable, **gradient: Tensor) -> Operation | Tensor:
        prefix = "Resource" if var.is_resource else ""
        middle = "SparseApply" if "indices" in gradient else "Apply"
        op = f"{prefix}{middle}{self._kind}"
        wanted = [argument.name for argument in op_def_registry.look_up(op).input_arg]
        given = {**self._inputs(var), **gradient}
        inputs = {name: given[name] for name in wanted}
        update: Operation | Tensor = op_function(op)(**inputs, **self._op_attrs)
        return update

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation | Tensor:
        return self._training_op(var, grad=grad)

    def _resource_apply_dense(self, grad: Tensor, handle: Variable) -> Operation | Tensor:
        return self._training_op(handle, grad=grad)

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Operation | Tensor:
        return self._training_op(var, grad=grad.values, indices=grad.indices)

    def _resource_apply_sparse(
        self, grad: Tensor, handle: Variable, indices: Tensor
    ) -> Operation | Tensor:
        return self._training_op(handle, grad=grad, indices=indices)


class GradientDescentOptimizer(TrainingOpOptimizer):
    """Updates by gradient descent: var −= learning_rate × gradient."""

    def __init__(
        self,
        learning_rate: Hyperparameter,
        use_locking: bool = False,
        name: str = "GradientDescent",
    ) -> None:
        super().__init__("GradientDescent", (), {"alpha": learning_rate}, use_locking, name)

    def _training_op(self, var: Variable, **gradient: Tensor) -> Operation | Tensor:
        op = f"{'Resource' if var.is_resource else ''}ApplyGradientDescent"
        alpha = self._number("alpha", var)
        update: Operation | Tensor = op_function(op)(var, alpha, gradient["grad"], **self._op_attrs)
        return update

    # A scatter subtracts every value of a repeated row, so the values need not be summed first.

    def _apply_sparse_duplicate_indices(
        self, grad: IndexedSlices, var: Variable
    ) -> Operation | Tensor:
        change = op_function("Mul")(grad.values, self._number("alpha", var))
        update: Tensor = op_function("ScatterSub")(var, grad.indices, change, **self._op_attrs)
        return update

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, handle: Variable, indices: Tensor
    ) -> Operation | Tensor:
        change = op_function("Neg")(op_function("Mul")(grad, self._number("alpha", handle)))
        add = op_function("ResourceScatterAdd")
        update: Operation = add(handle, indices, change, dtype=handle.dtype)
        return update


class MomentumOptimizer(TrainingOpOptimizer):
    """Updates by gradient descent with momentum.

    accumulation = momentum × accumulation + gradient; var −= learning_rate × accumulation
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        momentum: Hyperparameter,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        numbers = {"lr": learning_rate, "momentum": momentum}
        slots = (Slot("momentum", "accum"),)
        super().__init__("Momentum", slots, numbers, use_locking, name, use_nesterov=use_nesterov)


class AdagradOptimizer(TrainingOpOptimizer):
    """Updates by Adagrad.

    accumulator += gradient²; var −= learning_rate × gradient / √accumulator
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        """Take the hyperparameters.

        Raises ValueError if `initial_accumulator_value` is not positive.
        """
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                f"initial_accumulator_value must be positive: {initial_accumulator_value}"
            )
        begin = constant_initializer(initial_accumulator_value)
        slots = (Slot("accumulator", "accum", begin),)
        super().__init__("Adagrad", slots, {"lr": learning_rate}, use_locking, name)


class AdadeltaOptimizer(TrainingOpOptimizer):
    """Updates by Adadelta.

    var −= learning_rate × gradient × √mean(past updates²) / √mean(past gradients²)
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        rho: Hyperparameter = 0.95,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        numbers = {"lr": learning_rate, "rho": rho, "epsilon": epsilon}
        slots = (Slot("accum", "accum"), Slot("accum_update", "accum_update"))
        super().__init__("Adadelta", slots, numbers, use_locking, name)


class RMSPropOptimizer(TrainingOpOptimizer):
    """Updates by RMSProp, which divides gradients by the root of their moving mean square.

    If `centered` is set, it divides by the root of their moving variance instead.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        decay: Hyperparameter = 0.9,
        momentum: Hyperparameter = 0.0,
        epsilon: Hyperparameter = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        numbers = {"lr": learning_rate, "rho": decay, "momentum": momentum, "epsilon": epsilon}
        mean = (Slot("mg", "mg"),) if centered else ()
        slots = (Slot("rms", "ms", ones_initializer()), *mean, Slot("momentum", "mom"))
        kind = "CenteredRMSProp" if centered else "RMSProp"
        super().__init__(kind, slots, numbers, use_locking, name)


class FtrlOptimizer(TrainingOpOptimizer):
    """Updates by FTRL-Proximal (follow the regularised leader), with L1 and L2 regularisation."""

    def __init__(
        self,
        learning_rate: Hyperparameter,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float | None = None,
    ) -> None:
        """Take the hyperparameters. Raises ValueError if one is out of its range."""
        for text, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0.0:
                raise ValueError(f"{text} {value} needs to be positive or zero")
        if learning_rate_power > 0.0:
            raise ValueError(
                f"learning_rate_power {learning_rate_power} needs to be negative or zero"
            )
        numbers = {
            "lr": learning_rate,
            "l1": l1_regularization_strength,
            "l2": _with_beta(l2_regularization_strength, beta or 0.0, learning_rate),
            "lr_power": learning_rate_power,
        }
        shrinks = l2_shrinkage_regularization_strength > 0.0
        if shrinks:
            numbers["l2_shrinkage"] = l2_shrinkage_regularization_strength
        begin = constant_initializer(initial_accumulator_value)
        slots = (
            Slot("accum", "accum", begin, accum_name),
            Slot("linear", "linear", op_name=linear_name),
        )
        super().__init__("FtrlV2" if shrinks else "Ftrl", slots, numbers, use_locking, name)


def _with_beta(l2: float, beta: float, learning_rate: Hyperparameter) -> Hyperparameter:
    """Return l2 + beta / (2 × learning_rate).

    If `beta` is set, a function is returned, because `learning_rate` may be a function.
    """
    if not beta:
        return l2

    def strength() -> Operand:
        rate = learning_rate() if callable(learning_rate) else learning_rate
        return l2 + beta / (2.0 * rate)

    return strength


class AdamOptimizer(TrainingOpOptimizer):
    """Updates by Adam: var −= learning_rate × mean(gradients) / (√mean(gradients²) + epsilon).

    The means are moving averages, corrected for their initial value of zero.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        numbers = {"lr": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        super().__init__("Adam", (Slot("m", "m"), Slot("v", "v")), numbers, use_locking, name)

    def _powers(self) -> tuple[Variable, Variable]:
        """Return the variables that hold β₁ᵗ and β₂ᵗ; t is the number of the training step."""
        graph = get_default_graph()
        found = [
            self._get_non_slot_variable(name, graph) for name in ("beta1_power", "beta2_power")
        ]
        first, second = found
        assert first is not None and second is not None  # created by `_create_slots`
        return first, second

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        first = min(var_list, key=lambda variable: variable.name)
        for name in ("beta1", "beta2"):
            value = self._numbers[name]
            value = value() if callable(value) else value
            self._create_non_slot_variable(value, f"{name}_power", first)
        super()._create_slots(var_list)

    def _inputs(self, var: Variable) -> Inputs:
        powers = [_in_type_of(var, each) for each in self._powers()]
        return {**super()._inputs(var), "beta1_power": powers[0], "beta2_power": powers[1]}

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Operation:
        graph = get_default_graph()
        with graph.control_dependencies(update_ops):
            powers = [
                power.assign(op_function("Mul")(power, self._tensors[name]), read_value=False)
                for name, power in zip(("beta1", "beta2"), self._powers(), strict=True)
            ]
        return group(*update_ops, *powers, name=name_scope)

    # No op SparseApplyAdam exists. The means of all rows decay; a gradient changes only its rows.

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Operation | Tensor:
        return self._update_rows(var, grad.values, grad.indices)

    def _resource_apply_sparse(
        self, grad: Tensor, handle: Variable, indices: Tensor
    ) -> Operation | Tensor:
        return self._update_rows(handle, grad, indices)

    def _update_rows(self, var: Variable, grad: Tensor, indices: Tensor) -> Operation:
        numbers = self._inputs(var)
        beta1, beta2 = numbers["beta1"], numbers["beta2"]
        correction = op_function("Sqrt")(1 - numbers["beta2_power"]) / (1 - numbers["beta1_power"])
        mean = _decayed(numbers["m"], beta1, grad, indices)
        square = _decayed(numbers["v"], beta2, grad * grad, indices)
        step = (
            numbers["lr"] * correction * mean / (op_function("Sqrt")(square) + numbers["epsilon"])
        )
        change = var.assign_sub(step, read_value=False)
        return group(change, mean, square)


def _in_type_of(var: Variable, number: Variable) -> Tensor:
    tensor: Tensor = number.value()
    return tensor if tensor.dtype is var.dtype else op_function("Cast")(tensor, DstT=var.dtype)


def _decayed(slot: Variable, decay: Tensor, values: Tensor, indices: Tensor) -> Tensor:
    """Multiply `slot` by `decay`, add values × (1 − decay) at `indices`; return the new value."""
    shrunk = slot.assign(slot * decay)
    with slot.graph.control_dependencies([shrunk]):
        after: Tensor = scatter_add(slot, indices, values * (1 - decay))
    return after
