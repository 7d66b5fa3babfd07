"""Kernels of staging areas: one step puts a tuple of tensors and another step takes it.

Stage and Unstage take tuples in the order in which they were put, MapStage and MapUnstage by key.
An area is identified by `shared_name`, or by the node's name if `shared_name` is empty.

TF: tensorflow/core/kernels/stage_op.cc, map_stage_op.cc
"""

from __future__ import annotations

import itertools

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.framework.op_kernel import Kernel, KernelDef, OpKernelContext
from runtime.framework.resources.staging_area import (
    WAIT,
    Attempt,
    Outcome,
    StagingBuffer,
    StagingMap,
)
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue


def _buffer(context: OpKernelContext) -> StagingBuffer:
    limits = context.attr("capacity"), context.attr("memory_limit")
    found: StagingBuffer = context.kernel_state(
        lambda: context.resources.look_up_or_create(
            context.attr("container"),
            StagingBuffer,
            context.attr("shared_name") or context.node.name,
            lambda: StagingBuffer(*limits),
        )
    )
    return found


def stage(context: OpKernelContext, *values: TensorValue) -> Outcome:
    """Stage: append the tuple `values` to the area; wait until there is room."""
    area = _buffer(context)
    return area.run(lambda: area.put(values), context.cancellation)


def unstage(context: OpKernelContext) -> Outcome:
    """Unstage: remove and return the oldest tuple; wait until there is one."""
    area = _buffer(context)
    return area.run(area.get, context.cancellation)


def stage_peek(context: OpKernelContext, index: np.ndarray) -> Outcome:
    """StagePeek: return the tuple at position `index` without removing it.

    The op waits until there is a tuple at that position.
    """
    if np.ndim(index):
        raise InvalidArgumentError(f"index must be scalar, got shape {shape_text(np.shape(index))}")
    area, place = _buffer(context), int(index)
    return area.run(lambda: area.peek(place), context.cancellation)


def stage_clear(context: OpKernelContext) -> None:
    """StageClear: remove all tuples."""
    area = _buffer(context)
    area.run(area.clear, context.cancellation)


def stage_size(context: OpKernelContext) -> np.int32:
    """StageSize: return the number of tuples."""
    area = _buffer(context)
    return np.int32(area.run(area.size, context.cancellation))


def _map(context: OpKernelContext) -> StagingMap:
    width = len(context.attr("dtypes"))
    is_ordered = context.node.op.startswith("Ordered")
    limits = context.attr("capacity"), context.attr("memory_limit")
    # The prefix separates an ordered area from an unordered area of the same name.
    name = context.attr("shared_name") or context.node.name
    found: StagingMap = context.kernel_state(
        lambda: context.resources.look_up_or_create(
            context.attr("container"),
            StagingMap,
            f"{'ordered/' if is_ordered else ''}{name}",
            lambda: StagingMap(*limits, width, is_ordered),
        )
    )
    return found


def _staging_key(key: np.ndarray) -> np.ndarray:
    """Return the key of MapStage, an integer tensor of any rank, unchanged.

    Raises InvalidArgumentError unless the tensor has exactly one element.
    """
    tensor = np.asarray(key)
    if not tensor.size:
        raise InvalidArgumentError("key must not be empty")
    if tensor.size > 1:
        raise InvalidArgumentError(
            f"key must be an int64 scalar, got tensor with shape: {shape_text(tensor.shape)}"
        )
    return tensor


def _scalar_key(key: np.ndarray) -> int:
    if np.ndim(key):
        raise InvalidArgumentError(f"key must be an int64 scalar: {shape_text(np.shape(key))}")
    return int(key)


def _check_order(places: list[int]) -> None:
    if not places:
        raise InvalidArgumentError("Indices are empty")
    if any(first >= second for first, second in itertools.pairwise(places)):
        raise InvalidArgumentError("Indices are not strictly ordered")


def map_stage(
    context: OpKernelContext, key: np.ndarray, indices: np.ndarray, *values: TensorValue
) -> Outcome:
    """MapStage: put `values` as the components `indices` of the tuple of `key`.

    The op waits until there is room.
    """
    tensor, places = _staging_key(key), np.ravel(indices).tolist()
    _check_order(places)
    if len(places) > len(values):
        raise InvalidArgumentError(f"Got {len(values)} values for {len(places)} indices")
    area = _map(context)
    return area.run(lambda: area.put(tensor, places, values), context.cancellation)


def _outputs(context: OpKernelContext, attempt: Attempt, keys: int = 0) -> Outcome:
    """Run `attempt` on the staging area and return its values; the first `keys` of them are keys.

    Raises InternalError if the op has more outputs than there are values.
    """

    def checked() -> Outcome:
        values = attempt()
        if values is not WAIT and len(values) - keys < len(context.attr("dtypes")):
            missing = f"Missing {len(values)}-th output from"
            raise InternalError(f"{missing} {{{{node {context.node.name}}}}}")
        return values

    return _map(context).run(checked, context.cancellation)


def map_unstage(context: OpKernelContext, key: np.ndarray, indices: np.ndarray) -> Outcome:
    """MapUnstage: remove and return the components `indices` of the tuple of `key`.

    The op waits until the tuple is complete.
    """
    area, number, places = _map(context), _scalar_key(key), np.ravel(indices).tolist()
    _check_order(places)
    return _outputs(context, lambda: area.get(number, places))


def map_unstage_no_key(context: OpKernelContext, indices: np.ndarray) -> Outcome:
    """MapUnstageNoKey: remove components `indices` of any tuple; return (key, components…).

    The op waits until there is a complete tuple.
    """
    area, places = _map(context), np.ravel(indices).tolist()
    _check_order(places)
    return _outputs(context, lambda: area.get_any(places), keys=1)


def map_peek(context: OpKernelContext, key: np.ndarray, indices: np.ndarray) -> Outcome:
    """MapPeek: return the components `indices` of the tuple of `key` without removing them.

    The op waits until the tuple is complete.
    """
    area, number, places = _map(context), _scalar_key(key), np.ravel(indices).tolist()
    _check_order(places)
    return _outputs(context, lambda: area.peek(number, places))


def map_clear(context: OpKernelContext) -> None:
    """MapClear: remove all tuples."""
    area = _map(context)
    area.run(area.clear, context.cancellation)


def map_size(context: OpKernelContext) -> np.int32:
    """MapSize: return the number of complete tuples."""
    area = _map(context)
    return np.int32(area.run(area.size, context.cancellation))


def map_incomplete_size(context: OpKernelContext) -> np.int32:
    """MapIncompleteSize: return the number of tuples that lack a component."""
    area = _map(context)
    return np.int32(area.run(area.incomplete_size, context.cancellation))


_BLOCKING_OPS: dict[str, Kernel] = {
    "Stage": stage,
    "StagePeek": stage_peek,
    "Unstage": unstage,
    **{
        f"{prefix}{op}": kernel
        for prefix in ("", "Ordered")
        for op, kernel in (
            ("MapPeek", map_peek),
            ("MapStage", map_stage),
            ("MapUnstage", map_unstage),
            ("MapUnstageNoKey", map_unstage_no_key),
        )
    },
}
_NON_BLOCKING_OPS: dict[str, Kernel] = {
    "StageClear": stage_clear,
    "StageSize": stage_size,
    **{
        f"{prefix}{op}": kernel
        for prefix in ("", "Ordered")
        for op, kernel in (
            ("MapClear", map_clear),
            ("MapIncompleteSize", map_incomplete_size),
            ("MapSize", map_size),
        )
    },
}

KERNELS = (
    *(KernelDef(op, kernel, asynchronous=True) for op, kernel in _BLOCKING_OPS.items()),
    *(KernelDef(op, kernel) for op, kernel in _NON_BLOCKING_OPS.items()),
)
