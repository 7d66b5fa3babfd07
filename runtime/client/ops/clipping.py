"""Gradient clipping by the L2 norm of one tensor, or by the joint norm of several tensors.

TF: tensorflow/python/ops/clip_ops.py
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.client.framework.argument_types import TensorLike
from runtime.client.framework.graph import get_default_graph
from runtime.client.framework.operation import Tensor
from runtime.client.ops import op_function
from runtime.client.ops.construction import convert_to_tensor
from runtime.client.ops.indexed_slices import IndexedSlices, with_values
from runtime.client.ops.math_ops import reduce_sum


def global_norm(t_list: Sequence[TensorLike], name: str | None = None) -> Tensor:
    """Return the L2 norm of all elements of all tensors together; None entries are skipped.

    Raises TypeError if `t_list` is no sequence.
    """
    _check_list(t_list)
    with get_default_graph().name_scope(name or "global_norm") as scope:
        halves = [op_function("L2Loss")(_values(each)) for each in t_list if each is not None]
        if not halves:
            return convert_to_tensor(0.0)
        total = op_function("AddN")(halves)
        norm: Tensor = op_function("Sqrt")(total * 2, name=scope)
        return norm


def clip_by_global_norm(
    t_list: Sequence[TensorLike],
    clip_norm: TensorLike,
    use_norm: TensorLike | None = None,
    name: str | None = None,
) -> tuple[list[TensorLike], Tensor]:
    """Scale the tensors by one factor so that their `global_norm` is at most `clip_norm`.

    Returns the scaled tensors and the norm before. If the norm is infinite, the scaled tensors are
    NaN. `use_norm` is the norm, if the caller has computed it. Raises TypeError if `t_list` is no
    sequence.
    """
    _check_list(t_list)
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    with get_default_graph().name_scope(name or "clip_by_global_norm"):
        limit = convert_to_tensor(clip_norm, None if isinstance(clip_norm, Tensor) else norm.dtype)
        scale = limit * op_function("Minimum")(1 / norm, 1 / limit)
        scale = scale + (norm - norm)  # NaN if the norm is infinite, else `scale` unchanged
        return [_scaled(each, scale) for each in t_list], norm


def clip_by_norm(
    t: TensorLike, clip_norm: TensorLike, axes: TensorLike | None = None, name: str | None = None
) -> Tensor | IndexedSlices:
    """Scale `t` down where its L2 norm along `axes` is larger than `clip_norm`."""
    with get_default_graph().name_scope(name or "clip_by_norm"):
        values = _values(t)
        total = reduce_sum(op_function("Square")(values), axes, True)
        is_some = total > 0
        safe = op_function("SelectV2")(is_some, total, op_function("OnesLike")(total))
        norm = op_function("SelectV2")(is_some, op_function("Sqrt")(safe), total)
        clipped = values * clip_norm / op_function("Maximum")(norm, clip_norm)
        return with_values(t, clipped)


def _check_list(t_list: TensorLike) -> None:
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise TypeError("t_list should be a sequence")


def _values(tensor: TensorLike) -> Tensor:
    return tensor.values if isinstance(tensor, IndexedSlices) else convert_to_tensor(tensor)


def _scaled(tensor: TensorLike, scale: Tensor) -> Tensor | IndexedSlices | None:
    return None if tensor is None else with_values(tensor, _values(tensor) * scale)
