"""Einsum of one or two tensors, computed as transposes around one matrix product.

The plan of an equation says which axes are batch, free or contracted. It depends on the ranks only
and is cached; a step (one Session.run) computes only the transposes and the product.

TF: tensorflow/core/kernels/linalg/einsum_op_impl.h
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import COMPLEX_TYPES, HALF_TYPES, SINGLE_AND_DOUBLE
from runtime.framework.shapes import shape_text
from runtime.kernels.linalg.matrix_product import stacked_product
from runtime.kernels.math.broadcasting import SMALL_ENOUGH

Label = str | int  # a letter of the equation, or −n for the nth last broadcasting dimension


@dataclasses.dataclass(frozen=True, slots=True)
class Equation:
    """A parsed equation, as labels of the axes of the inputs and of the output.

    `...` counts as one label.
    """

    text: str
    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The label of each axis, and the order of the labels in each stage of the computation."""

    inputs: tuple[tuple[Label, ...], ...]
    kept: tuple[tuple[Label, ...], ...]  # labels per input, without repeated and summed ones
    batch: tuple[Label, ...]
    contracted: tuple[Label, ...]
    distinct_output: tuple[Label, ...]
    output: tuple[Label, ...]


@functools.lru_cache(maxsize=1024)
def parse_equation(text: str) -> Equation:
    """Parse an einsum equation.

    Raises InvalidArgumentError if `text` is malformed.
    """
    sides = text.replace(" ", "").split("->")
    if len(sides) != 2:
        raise InvalidArgumentError(f"Expecting exactly one '->' in einsum equation: {text}")
    inputs = tuple(_parse_subscript(part, "input") for part in sides[0].split(","))
    if len(inputs) > 2:
        raise InvalidArgumentError(
            f"Expecting 1 or 2 input subscripts in equation '{text}' but got: {len(inputs)}"
        )
    output = _parse_subscript(sides[1], "output")
    for label in output:
        if label != "..." and not any(label in each for each in inputs):
            raise InvalidArgumentError(
                f"Einsum output subscripts for equation '{text}' has label '{label}' which is "
                "not present in the input subscripts"
            )
    return Equation(text, inputs, output)


def _parse_subscript(part: str, side: str) -> tuple[str, ...]:
    before, dots, after = part.partition("...")
    periods = part.count(".")
    if periods != len(dots):
        raise InvalidArgumentError(
            f"Expected at most one ellipsis (...), but found {periods} periods (.) in the {side} "
            f"subscript: {part}"
        )
    return (*before, *([dots] if dots else []), *after)


@functools.lru_cache(maxsize=1024)
def make_plan(text: str, ranks: tuple[int, ...]) -> Plan:
    """Return the plan of the equation `text` for inputs of the given `ranks`.

    Raises InvalidArgumentError if the equation is malformed or does not fit the ranks.
    """
    equation = parse_equation(text)
    if len(equation.inputs) != len(ranks):
        raise InvalidArgumentError(
            f"Expected {len(equation.inputs)} inputs for equation {text} but got: {len(ranks)}"
        )
    inputs = tuple(
        _expand(labels, rank, index)
        for index, (labels, rank) in enumerate(zip(equation.inputs, ranks, strict=True))
    )
    broadcasting = max(sum(isinstance(label, int) for label in labels) for labels in inputs)
    if broadcasting and "..." not in equation.output:
        raise InvalidArgumentError(
            f"Output contains {broadcasting} broadcasting dimension(s) but no ellipsis (...) was "
            "found in the output subscripts."
        )
    output = _with_broadcasting(equation.output, broadcasting)
    everywhere = [set(labels) for labels in inputs]
    needed = [
        set(output).union(*(everywhere[:index] + everywhere[index + 1 :]))
        for index in range(len(inputs))
    ]
    kept = tuple(
        tuple(label for label in dict.fromkeys(labels) if label in wanted)
        for labels, wanted in zip(inputs, needed, strict=True)
    )
    shared = [label for label in kept[0] if label in kept[-1]] if len(kept) == 2 else []
    batch = tuple(
        label for label in dict.fromkeys(output) if isinstance(label, int) or (label in shared)
    )
    return Plan(
        inputs=inputs,
        kept=kept,
        batch=batch,
        contracted=tuple(label for label in shared if label not in output),
        distinct_output=tuple(dict.fromkeys(output)),
        output=output,
    )


def _expand(labels: tuple[str, ...], rank: int, index: int) -> tuple[Label, ...]:
    extra = rank - len(labels) + ("..." in labels)
    if extra < 0 or (extra and "..." not in labels):
        wanted = len(labels) - ("..." in labels)
        raise InvalidArgumentError(f"Expected input {index} to have rank {wanted} but got: {rank}")
    return _with_broadcasting(labels, extra)


def _with_broadcasting(labels: tuple[str, ...], count: int) -> tuple[Label, ...]:
    expanded: list[Label] = []
    for label in labels:
        expanded += range(-count, 0) if label == "..." else [label]
    return tuple(expanded)


def _dimensions(plan: Plan, inputs: tuple[np.ndarray, ...]) -> dict[Label, int]:
    """Return the size of each label.

    Raises InvalidArgumentError unless equal letters have equal sizes. As in TensorFlow, a size of 0
    accepts any later size of the same letter.
    """
    sizes: dict[Label, int] = {}
    for labels, value in zip(plan.inputs, inputs, strict=True):
        for axis, (label, size) in enumerate(zip(labels, value.shape, strict=True)):
            known = sizes.setdefault(label, size)
            if isinstance(label, int):
                if known != size and 1 not in (known, size):
                    shapes = " vs. ".join(shape_text(each.shape) for each in inputs)
                    raise InvalidArgumentError(f"Invalid broadcasting dimensions: {shapes}")
                sizes[label] = size if known == 1 else known
            elif not known:
                sizes[label] = size
            elif known != size:
                raise InvalidArgumentError(
                    f"Expected dimension {known} at axis {axis} of the input shaped "
                    f"{shape_text(value.shape)} but got dimension {size}"
                )
    return sizes


def _reduce_input(
    value: np.ndarray, labels: tuple[Label, ...], kept: tuple[Label, ...]
) -> np.ndarray:
    """Take the diagonals of repeated labels, and sum over labels that are not in `kept`."""
    if labels == kept:
        return value
    number = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    return np.einsum(value, [number[each] for each in labels], [number[each] for each in kept])


def _arranged(value: np.ndarray, kept: tuple[Label, ...], order: tuple[Label, ...]) -> np.ndarray:
    """Return `value` with the axes in `order`.

    `kept` are the labels of the axes of `value`; an absent label becomes a dimension of size 1.
    """
    present = [kept.index(label) for label in order if label in kept]
    absent = tuple(axis for axis, label in enumerate(order) if label not in kept)
    moved = value.transpose(present)
    return np.expand_dims(moved, absent) if absent else moved


def _product(
    plan: Plan, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, tuple[Label, ...]]:
    """Contract `left` and `right`; return (result, labels of the axes of the result)."""
    joined = set(plan.batch) | set(plan.contracted)
    free = [tuple(label for label in kept if label not in joined) for kept in plan.kept]
    left = _arranged(left, plan.kept[0], plan.batch + free[0] + plan.contracted)
    right = _arranged(right, plan.kept[1], plan.batch + plan.contracted + free[1])
    depth, rows = len(plan.batch), len(free[0])
    rows_shape, inner = left.shape[depth : depth + rows], left.shape[depth + rows :]
    columns_shape = right.shape[depth + len(inner) :]
    contracted = math.prod(inner)
    if left.size * right.size > SMALL_ENOUGH:
        batch = np.broadcast_shapes(left.shape[:depth], right.shape[:depth])
        check_allocation((*batch, *rows_shape, *columns_shape), left.dtype)
    product = stacked_product(
        left.reshape(*left.shape[:depth], math.prod(rows_shape), contracted),
        right.reshape(*right.shape[:depth], contracted, math.prod(columns_shape)),
    )
    shape = product.shape[:depth] + rows_shape + columns_shape
    return product.reshape(shape), plan.batch + free[0] + free[1]


def _fill_diagonal(
    value: np.ndarray, labels: tuple[Label, ...], output: tuple[Label, ...]
) -> np.ndarray:
    """Return zeros with `value` on the diagonal of each label that `output` repeats.

    `labels` are the labels of the axes of `value`.
    """
    size = dict(zip(labels, value.shape, strict=True))
    shape = [size[label] for label in output]
    check_allocation(shape, value.dtype)
    result = np.zeros(shape, value.dtype)
    number = {label: index for index, label in enumerate(labels)}
    # `np.einsum` returns the diagonal as a writable view of `result`.
    diagonal = np.einsum(result, [number[each] for each in output], list(range(len(labels))))
    diagonal[...] = value
    return result


def einsum(*inputs: np.ndarray, equation: str) -> np.ndarray:
    """Einsum: return the sum of products that `equation` describes.

    Raises InvalidArgumentError if the equation is malformed or the shapes do not fit it.
    """
    plan = make_plan(equation, tuple(each.ndim for each in inputs))
    sizes = _dimensions(plan, inputs)
    if not all(each.size for each in inputs):
        shape = [sizes[label] for label in plan.output]
        check_allocation(shape, inputs[0].dtype)
        return np.zeros(shape, inputs[0].dtype)
    reduced = [_reduce_input(*each) for each in zip(inputs, plan.inputs, plan.kept, strict=True)]
    if len(reduced) == 2:
        value, labels = _product(plan, *reduced)
    else:
        value, labels = reduced[0], plan.kept[0]
    if labels != plan.distinct_output:
        value = _arranged(value, labels, plan.distinct_output)
    if len(plan.output) > len(plan.distinct_output):
        value = _fill_diagonal(value, plan.distinct_output, plan.output)
    return value


def half_einsum(*inputs: np.ndarray, equation: str) -> np.ndarray:
    """Einsum of half-precision tensors: compute `einsum` in float32."""
    wide = einsum(*(each.astype(np.float32) for each in inputs), equation=equation)
    return np.asarray(wide).astype(inputs[0].dtype)


KERNELS: tuple[KernelDef, ...] = (
    KernelDef(
        "Einsum",
        einsum,
        {"T": (*SINGLE_AND_DOUBLE, *COMPLEX_TYPES, DataType.INT32, DataType.INT64)},
        expensive=True,
    ),
    KernelDef("Einsum", half_einsum, {"T": HALF_TYPES}, expensive=True),
)
