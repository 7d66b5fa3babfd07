"""Registration of gradient functions: `RegisterGradient`, `NotDifferentiable`, `custom_gradient`.

Guarantees: an op has one gradient function; registering a second one raises KeyError.

TF: tensorflow/python/framework/registry.py, ops.py (RegisterGradient), ops/custom_gradient.py
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping

from runtime.client.framework.argument_types import Structure, TensorLike
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor
from runtime.client.ops.gradients.gradient_operations import TensorGradientFunction, for_tensors
from runtime.client.structures import flatten, pack_as
from runtime.graph.gradients.gradient_functions import GRADIENT_FUNCTIONS, NO_GRADIENT

_TYPE_ATTR = "_gradient_op_type"  # attribute that overrides an operation's gradient function
_VARIABLE_READS = frozenset(("ReadVariableOp", "VariableV2"))
_numbers = itertools.count(1)  # makes names of custom gradients unique in the process


@dataclasses.dataclass(frozen=True, slots=True)
class Derivation:
    """How an op is differentiated."""

    function: TensorGradientFunction | None  # None if the op is not differentiable
    fills_zeros: bool = True  # if an output has no gradient, pass zeros, not None
    takes_slices: bool = False  # pass IndexedSlices as they are, not as a tensor


_derivations: dict[str, Derivation] = {  # op, or registered name → Derivation; one write is atomic
    **{op: Derivation(None) for op in NO_GRADIENT},
    **{op: Derivation(for_tensors(each)) for op, each in GRADIENT_FUNCTIONS.items()},
}


def find_derivation(operation: Operation) -> Derivation | None:
    """Return the Derivation of an operation, or None if nothing is registered for its op.

    Raises LookupError if the operation names a gradient function that is not registered.
    """
    if _TYPE_ATTR not in operation.node_def.attr:
        return _derivations.get(operation.type)
    name = operation.get_attr(_TYPE_ATTR).decode()
    if name not in _derivations:
        raise LookupError(
            f"Operation '{operation.name}' asks for the gradient function '{name}', which is not "
            "registered; `RegisterGradient` does that"
        )
    return _derivations[name]


def registered() -> Mapping[str, Derivation]:
    """Return the Derivation of each op or registered name."""
    return dict(_derivations)


def replace_derivations(derivations: Mapping[str, Derivation]) -> None:
    """Replace registrations; an op may have one already, unlike in `RegisterGradient`.

    Only for the tables of the front end, when they are imported.
    """
    _derivations.update(derivations)


def _register(name: str, derivation: Derivation) -> None:
    if name in _derivations:
        raise KeyError(f"Registering two gradient with name '{name}'!")
    _derivations[name] = derivation


class RegisterGradient:
    """`@RegisterGradient("Op")` registers a function as the gradient function of that op.

    The function takes the operation and the gradients of its outputs, and returns the gradients of
    its inputs: a tensor, or a list with None for an input that has no gradient. Instead of an op, a
    name may be given that `Graph.gradient_override_map` refers to.
    """

    def __init__(self, op_type: str) -> None:
        """Take the op or name to register for. Raises TypeError if it is not a string."""
        if not isinstance(op_type, str):
            raise TypeError(f"op_type must be a string, got {op_type!r}")
        self._op_type = op_type

    def __call__(self, function: TensorGradientFunction) -> TensorGradientFunction:
        """Register `function`. Raises KeyError if the op or name has a function already."""
        _register(self._op_type, Derivation(function))
        return function


def NotDifferentiable(op_type: str) -> None:  # noqa: N802 # TensorFlow's name
    """Register an op as not differentiable. Raises KeyError if it is registered already."""
    if not isinstance(op_type, str):
        raise TypeError(f"op_type must be a string, got {op_type!r}")
    _register(op_type, Derivation(None))


NoGradient = no_gradient = NotDifferentiable


def custom_gradient(f: Callable[..., Structure]) -> Callable[..., Structure]:
    """Decorate a function that returns its result together with its gradient function.

    `f(*args)` must return (result, gradient function). The gradient function takes the gradients of
    the results. It returns the gradients of the arguments as a list, or one gradient if there is
    one argument. The decorated function raises TypeError if it is called with keyword arguments, or
    if `f` reads variables, whose gradients would be lost.
    """

    def decorated(*args: TensorLike, **kwargs: object) -> Structure:
        if kwargs:
            raise TypeError(
                "The custom_gradient decorator currently supports keywords arguments only when "
                "eager execution is enabled."
            )
        graph = get_default_graph()
        with graph.name_scope("CustomGradient"):
            arguments = [op_function("Identity")(convert_to_tensor(each)) for each in args]
            before = graph.version
            result, grad_fn = f(*arguments)
            _check_reads_no_variable(graph.get_operations()[before:])
            results = [convert_to_tensor(each) for each in flatten(result)]
            name = f"CustomGradient-{next(_numbers)}"
            _register(
                name, Derivation(_custom_gradient_function(grad_fn, len(results), len(arguments)))
            )
            with graph.gradient_override_map({"IdentityN": name}):
                outputs = op_function("IdentityN")([*results, *arguments])
        return pack_as(result, list(outputs[: len(results)]))

    return decorated


def _custom_gradient_function(
    grad_fn: Callable[..., Structure], results: int, arguments: int
) -> Callable[..., list[Tensor | None]]:
    def gradient(_: Operation, *grads: Tensor) -> list[Tensor | None]:
        found = flatten(grad_fn(*grads[:results]))
        if len(found) != arguments:
            raise ValueError(
                f"custom_gradient function expected to return {arguments} gradients, but returned "
                f"{len(found)} instead."
            )
        return [*[None] * results, *found]

    return gradient


def _check_reads_no_variable(operations: list[Operation]) -> None:
    for operation in operations:
        if operation.type in _VARIABLE_READS:
            raise TypeError(
                "A function with a custom gradient takes its variables as arguments here; "
                f"operation '{operation.name}' reads one"
            )
