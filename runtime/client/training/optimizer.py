"""Optimizer: the base class of optimisers; a subclass defines how one variable is updated.

A subclass overrides `_apply_dense`, and if it needs them `_apply_sparse`, `_resource_apply_dense`,
`_resource_apply_sparse`, `_create_slots`, `_prepare` and `_finish`. A slot is an additional
variable that belongs to one optimised variable; a non-slot variable belongs to all of them.

Guarantees: slots and non-slot variables have TensorFlow's names, so that Runstep and TensorFlow can
read each other's checkpoints. If a row occurs more than once in a gradient, its values are summed
before the update.

TF: tensorflow/python/training/optimizer.py, slot_creator.py
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Sequence

from runtime.client.framework.argument_types import Structure, TensorLike
from runtime.client.framework.graph import Graph, get_default_graph
from runtime.client.framework.graph_elements import GraphKeys
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor, group, tuple_
from runtime.client.ops.gradients.backpropagation import Gradient
from runtime.client.ops.gradients.differentiation import gradients
from runtime.client.ops.indexed_slices import IndexedSlices, with_values
from runtime.client.ops.initializers import zeros_initializer
from runtime.client.ops.variable_scopes import get_variable, variable_scope
from runtime.client.ops.variables import Variable, trainable_variables

GradientAndVariable = tuple[Gradient | None, Variable]


class Optimizer(abc.ABC):
    """Updates variables to minimise a loss."""

    GATE_NONE = 0  # apply each gradient as soon as it is computed
    GATE_OP = 1  # use no gradient of an operation before all its gradients exist
    GATE_GRAPH = 2  # use no gradient before all gradients exist

    def __init__(self, use_locking: bool, name: str) -> None:
        """Take the prefix `name` of slot names. Raises ValueError if it is empty."""
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        self._slots: dict[str, dict[Variable, Variable]] = {}
        self._non_slot_variables: dict[tuple[str, Graph | None], Variable] = {}

    def get_name(self) -> str:
        """Return the name of the optimiser."""
        return self._name

    def minimize(
        self,
        loss: TensorLike,
        global_step: Variable | None = None,
        var_list: Iterable[Variable] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: TensorLike | None = None,
    ) -> Operation:
        """Add an operation that does one training step: it updates the variables once.

        Afterwards it adds one to `global_step`, if that is given. Raises ValueError if the loss
        depends on none of the variables.
        """
        pairs = self.compute_gradients(
            loss, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops,
            grad_loss,
        )  # fmt: skip
        if all(gradient is None for gradient, _ in pairs):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not "
                f"support gradients, between variables {[str(each) for _, each in pairs]} and "
                f"loss {loss}."
            )
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(
        self,
        loss: TensorLike,
        var_list: Iterable[Variable] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: TensorLike | None = None,
    ) -> list[GradientAndVariable]:
        """Return [(gradient, variable)] of `var_list` (None: all trainable variables).

        Raises ValueError if the loss is not floating-point or there is no variable.
        """
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                f"Optimizer.GATE_GRAPH.  Not {gate_gradients}"
            )
        value = convert_to_tensor(loss() if callable(loss) else loss)
        if not value.dtype.is_floating:
            raise ValueError(
                f"Invalid type {value.dtype.name_on_wire!r} for {value.name}, expected a "
                "floating type"
            )
        variables = trainable_variables() if var_list is None else _flat(var_list)
        if not variables:
            raise ValueError("No variables to optimize.")
        found = gradients(
            value,
            variables,
            None if grad_loss is None else [grad_loss],
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            gate_gradients=gate_gradients == self.GATE_OP,
            aggregation_method=aggregation_method,
        )
        if gate_gradients == self.GATE_GRAPH:
            found = _gated(found)
        return list(zip(found, variables, strict=True))

    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """Add an operation that updates the variables and then adds one to `global_step`.

        Raises ValueError if there is no pair, or no pair has a gradient.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("No variables provided.")
        given = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        if not given:
            names = [str(variable) for _, variable in pairs]
            raise ValueError(f"No gradients provided for any variable: {names}.")
        graph = get_default_graph()
        with graph.control_dependencies(None):
            self._create_slots([variable for _, variable in given])
        with graph.name_scope(name or self._name) as scope:
            self._prepare()
            updates = [self._update(_tensor(gradient), each) for gradient, each in given]
            if global_step is None:
                step = self._finish(updates, scope)
            else:
                with graph.control_dependencies([self._finish(updates, "update")]):
                    step = global_step.assign_add(1, scope, read_value=False)
                    step = step if isinstance(step, Operation) else step.op
        if step not in graph.get_collection(GraphKeys.TRAIN_OP):
            graph.add_to_collection(GraphKeys.TRAIN_OP, step)
        return step

    def _update(self, gradient: Gradient, variable: Variable) -> Operation:
        """Add an operation that updates a variable, in the name scope `update_<variable>`."""
        graph = get_default_graph()
        with graph.name_scope(f"update_{variable.op.name}"), graph.colocate_with(variable.op):
            if isinstance(gradient, Tensor):
                dense = self._resource_apply_dense if variable.is_resource else self._apply_dense
                return _operation(dense(gradient, variable))
            if variable.is_resource:
                return _operation(
                    self._resource_apply_sparse_duplicate_indices(
                        gradient.values, variable, gradient.indices
                    )
                )
            return _operation(self._apply_sparse_duplicate_indices(gradient, variable))

    # Slots

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Return the slot `name` of the variable `var`, or None if there is none."""
        return self._slots.get(name, {}).get(var)

    def get_slot_names(self) -> list[str]:
        """Return the names of the slots, sorted."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """Return the slots and non-slot variables in the default graph, sorted by name."""
        graph = get_default_graph()
        slots = [slot for named in self._slots.values() for slot in named.values()]
        found = [
            each for each in (*slots, *self._non_slot_variables.values()) if each.graph is graph
        ]
        return sorted(found, key=lambda each: each.name)

    def _zeros_slot(self, var: Variable, slot_name: str, op_name: str) -> Variable:
        """Return the slot of a variable; if there is none, it is created with zeros."""
        return self._slot(var, slot_name, op_name, zeros_initializer())

    def _get_or_make_slot(
        self, var: Variable, val: TensorLike, slot_name: str, op_name: str
    ) -> Variable:
        """Return the slot of a variable; if there is none, it is created with the value `val`."""
        return self._slot(var, slot_name, op_name, lambda *_: convert_to_tensor(val, var.dtype))

    def _slot(
        self, var: Variable, slot_name: str, op_name: str, initializer: Callable[..., Tensor]
    ) -> Variable:
        named = self._slots.setdefault(slot_name, {})
        if var not in named:
            with variable_scope(None, f"{var.op.name}/{op_name}"), var.graph.colocate_with(var.op):
                named[var] = get_variable(
                    "",
                    var.shape,
                    var.dtype,
                    initializer,
                    trainable=False,
                    use_resource=var.is_resource,
                )
        return named[var]

    def _create_non_slot_variable(
        self, initial_value: TensorLike, name: str, colocate_with: Variable
    ) -> Variable:
        """Return the non-slot variable `name`; if there is none, it is created."""
        key = (name, colocate_with.graph)
        if key not in self._non_slot_variables:
            with colocate_with.graph.colocate_with(colocate_with.op):
                self._non_slot_variables[key] = Variable(
                    initial_value,
                    trainable=False,
                    name=name,
                    use_resource=colocate_with.is_resource,
                )
        return self._non_slot_variables[key]

    def _get_non_slot_variable(self, name: str, graph: Graph | None = None) -> Variable | None:
        return self._non_slot_variables.get((name, graph))

    # Methods that subclasses override

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        """Create the slots of the variables in `var_list`; by default there are none."""
        del var_list

    def _prepare(self) -> None:
        """Convert hyperparameters to tensors; called before the updates are built."""
        return

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Operation:
        """Add an operation that waits for all updates."""
        return group(*update_ops, name=name_scope)

    @abc.abstractmethod
    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation | Tensor:
        """Add an operation that updates a reference variable."""

    def _resource_apply_dense(self, grad: Tensor, handle: Variable) -> Operation | Tensor:
        """Add an operation that updates a resource variable."""
        raise NotImplementedError(f"{type(self).__name__} does not update resource variables")

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Operation | Tensor:
        """Add an operation that updates rows of a reference variable.

        The row indices in `grad` are unique.
        """
        raise NotImplementedError(f"{type(self).__name__} does not update rows of a variable")

    def _resource_apply_sparse(
        self, grad: Tensor, handle: Variable, indices: Tensor
    ) -> Operation | Tensor:
        """Add an operation that updates rows of a resource variable.

        The row indices `indices` are unique.
        """
        raise NotImplementedError(f"{type(self).__name__} does not update rows of a variable")

    def _apply_sparse_duplicate_indices(
        self, grad: IndexedSlices, var: Variable
    ) -> Operation | Tensor:
        """Do what `_apply_sparse` does, for row indices that may repeat.

        A subclass overrides this if its op handles repeated indices.
        """
        values, indices = summed_rows(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(values, indices, grad.dense_shape), var)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, handle: Variable, indices: Tensor
    ) -> Operation | Tensor:
        """Do what `_resource_apply_sparse` does, for row indices that may repeat.

        A subclass overrides this if its op handles repeated indices.
        """
        values, rows = summed_rows(grad, indices)
        return self._resource_apply_sparse(values, handle, rows)


def summed_rows(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Sum the values that belong to the same row.

    Returns the sums `[m, …]` and the unique row indices `[m]`.
    """
    rows, places = op_function("Unique")(indices)
    count = op_function("Size")(rows)
    return op_function("UnsortedSegmentSum")(values, places, count), rows


def _flat(variables: Structure) -> list[Variable]:
    if isinstance(variables, Variable):
        return [variables]
    found: list[Variable] = []
    for each in variables:
        if not isinstance(each, Variable | list | tuple):
            raise TypeError(f"Argument is not a variable: {each}")
        found += [each] if isinstance(each, Variable) else _flat(each)
    return found


def _gated(found: Sequence[Gradient | None]) -> list[Gradient | None]:
    """Return the gradients; none is available before all are computed."""
    values = [each.values if isinstance(each, IndexedSlices) else each for each in found]
    return [
        None if value is None else with_values(each, value)
        for each, value in zip(found, tuple_(values), strict=True)
    ]


def _tensor(gradient: TensorLike) -> Gradient:
    return gradient if isinstance(gradient, IndexedSlices) else convert_to_tensor(gradient)


def _operation(update: Operation | Tensor) -> Operation:
    return update if isinstance(update, Operation) else update.op
