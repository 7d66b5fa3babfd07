"""Functions that apply a function to every row, and `case`, which selects from several.

TF: tensorflow/python/ops/map_fn.py, functional_ops.py, control_flow_case.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from runtime.client.framework.argument_types import Structure, TensorLike
from runtime.client.framework.element_types import as_dtype
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.framework.tensor_shape import TensorShape
from runtime.client.ops import op_function
from runtime.client.ops.construction import control_dependencies, convert_to_tensor
from runtime.client.ops.control_flow import cond, while_loop
from runtime.client.ops.tensor_array_ops import TensorArray
from runtime.client.structures import flatten, pack_as


def map_fn(
    fn: Callable[[Structure], Structure],
    elems: Structure,
    dtype: Structure = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str = "map",
) -> Structure:
    """Apply `fn` to each row of `elems`, and stack the results to `[rows, …]`.

    `elems` and the results of `fn` may be tensors or structures of tensors. If the result has other
    types or another structure than `elems`, `dtype` must give them.
    """
    del back_prop, swap_memory
    with get_default_graph().name_scope(name):
        rows = _Rows(elems)
        types = flatten(elems) if dtype is None else flatten(dtype)
        found = [_array(each, rows.count, infer_shape) for each in types]
        structure = elems if dtype is None else dtype

        def step(index: Tensor, arrays: list[TensorArray]) -> Structure:
            values = _leaves(fn(rows.at(index)), structure)
            return index + 1, [
                array.write(index, value) for array, value in zip(arrays, values, strict=True)
            ]

        _, filled = while_loop(
            lambda index, _: index < rows.count,
            step,
            (0, found),
            parallel_iterations=parallel_iterations or 10,
        )
        return pack_as(structure, [array.stack() for array in filled])


def foldl(
    fn: Callable[[Structure, Structure], Structure],
    elems: Structure,
    initializer: Structure | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str = "foldl",
) -> Structure:
    """Return fn(… fn(fn(initializer, row 0), row 1) …, last row).

    If `initializer` is None, the first row is used instead and `fn` starts at the next row.
    """
    del back_prop, swap_memory
    return _fold(fn, elems, initializer, parallel_iterations, name, is_backward=False)


def foldr(
    fn: Callable[[Structure, Structure], Structure],
    elems: Structure,
    initializer: Structure | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str = "foldr",
) -> Structure:
    """Do what `foldl` does, from the last row to the first."""
    del back_prop, swap_memory
    return _fold(fn, elems, initializer, parallel_iterations, name, is_backward=True)


def _fold(
    fn: Callable[[Structure, Structure], Structure],
    elems: Structure,
    initializer: Structure | None,
    parallel_iterations: int,
    name: str,
    is_backward: bool,
) -> Structure:
    _check_callable(fn)
    with get_default_graph().name_scope(name):
        rows = _Rows(elems)
        value, first = rows.initial_value(initializer, is_backward)

        def step(index: Tensor, value: Structure) -> Structure:
            at = rows.count - 1 - index if is_backward else index
            return index + 1, fn(value, rows.at(at))

        _, value = while_loop(
            lambda index, _: index < rows.count,
            step,
            (first, value),
            parallel_iterations=parallel_iterations,
        )
        return value


def scan(
    fn: Callable[[Structure, Structure], Structure],
    elems: Structure,
    initializer: Structure | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str = "scan",
) -> Structure:
    """Return the intermediate values of `foldl` (`foldr` if `reverse` is set), as `[rows, …]`."""
    del back_prop, swap_memory
    _check_callable(fn)
    with get_default_graph().name_scope(name):
        rows = _Rows(elems)
        value, first = rows.initial_value(initializer, reverse)
        begun = [convert_to_tensor(leaf) for leaf in flatten(value)]
        arrays = [_array(leaf, rows.count, infer_shape) for leaf in begun]
        if initializer is None:
            at = rows.count - 1 if reverse else 0
            arrays = [array.write(at, leaf) for array, leaf in zip(arrays, begun, strict=True)]

        def step(index: Tensor, value: Structure, arrays: list[TensorArray]) -> Structure:
            at = rows.count - 1 - index if reverse else index
            after = fn(value, rows.at(at))
            leaves = _leaves(after, value)
            return (
                index + 1,
                after,
                [array.write(at, leaf) for array, leaf in zip(arrays, leaves, strict=True)],
            )

        _, _, arrays = while_loop(
            lambda index, *_: index < rows.count,
            step,
            (first, pack_as(value, list(begun)), arrays),
            parallel_iterations=parallel_iterations,
        )
        return pack_as(value, [array.stack() for array in arrays])


def case(
    pred_fn_pairs: Mapping[TensorLike, Callable[[], Structure]]
    | Iterable[tuple[TensorLike, Callable[[], Structure]]],
    default: Callable[[], Structure] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Structure:
    """Return the result of the function whose condition is the first true one, else of `default`.

    The step fails with INVALID_ARGUMENT if no condition is true and `default` is None, or if two
    are true and `exclusive` is set. Raises TypeError if `pred_fn_pairs` has anything but
    (condition, callable) pairs.
    """
    del strict
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, Mapping) else pred_fn_pairs)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
            raise TypeError(
                "Each entry in `pred_fn_pairs` must be a tuple of (condition, callable). "
                f"Received {pair}."
            )
    if default is not None and not callable(default):
        raise TypeError(f"Argument `default` must be callable. Received: {default}.")
    with get_default_graph().name_scope(name):
        conditions = [pred for pred, _ in pairs]
        checks = [_check_at_most_one(conditions)] if exclusive else []
        last = len(pairs) if default is not None else len(pairs) - 1
        if default is None:
            checks.append(_check_any(conditions))
            default = pairs[last][1]
        with control_dependencies(checks):
            chosen: Callable[[], Structure] = default
            for pred, function in reversed(pairs[:last]):
                chosen = _conditional(pred, function, chosen)
            return chosen()


def _conditional(
    pred: TensorLike, then: Callable[[], Structure], otherwise: Callable[[], Structure]
) -> Callable[[], Structure]:
    return lambda: cond(pred, then, otherwise)


def _check_at_most_one(conditions: list[TensorLike]) -> Operation:
    held = op_function("Pack")(conditions)
    total = op_function("Sum")(op_function("Cast")(held, DstT=as_dtype("int32")), 0)
    message = b"Input error: exclusive=True: more than 1 conditions evaluated as True. Preds:"
    operation: Operation = op_function("Assert")(total <= 1, [message, held])
    return operation


def _check_any(conditions: list[TensorLike]) -> Operation:
    held = op_function("Pack")(conditions)
    message = b"Input error: None of conditions evaluated as True. Preds:"
    operation: Operation = op_function("Assert")(op_function("Any")(held, 0), [message, held])
    return operation


def _check_callable(fn: object) -> None:
    if not callable(fn):
        raise TypeError(
            f"{fn.__class__.__name__} is not callable. Please provide a callable function."
        )


def _array(leaf: Structure, count: Tensor | int, infer_shape: bool) -> TensorArray:
    dtype = leaf.dtype if hasattr(leaf, "dtype") else as_dtype(leaf)
    return TensorArray(dtype, count, infer_shape=infer_shape)


def _leaves(value: Structure, structure: Structure) -> list[Structure]:
    leaves = flatten(value)
    if len(leaves) != len(flatten(structure)):
        raise ValueError(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: {structure}\n\nSecond structure: {value}"
        )
    return leaves


class _Rows:
    """The rows of a tensor, or of a structure of tensors with the same number of rows."""

    def __init__(self, elems: Structure) -> None:
        self._structure = elems
        self._tensors = [convert_to_tensor(leaf, name="elem") for leaf in flatten(elems)]
        if not self._tensors:
            raise ValueError("elems must be a Tensor or (possibly nested) sequence of Tensors.")
        for tensor in self._tensors:
            if tensor.shape.rank == 0:
                raise ValueError("elements in elems must be 1+ dimensional Tensors, not scalars")
        sizes = [each.shape[0] for each in self._tensors]
        known = next((size for size in sizes if size is not None), None)
        self.count: Tensor | int = (
            op_function("Shape")(self._tensors[0])[0] if known is None else known
        )

    def at(self, index: Tensor | int) -> Structure:
        """Return the row at `index`, in the structure of `elems`."""
        rows = [op_function("GatherV2")(tensor, index, 0) for tensor in self._tensors]
        for row, tensor in zip(rows, self._tensors, strict=True):
            row.set_shape(tensor.shape[1:] if tensor.shape.rank else TensorShape(None))
        return pack_as(self._structure, rows)

    def initial_value(
        self, initializer: Structure | None, is_backward: bool
    ) -> tuple[Structure, int]:
        """Return the initial value of a fold, and the number of rows that it already includes."""
        if initializer is not None:
            return initializer, 0
        return self.at(self.count - 1 if is_backward else 0), 1
