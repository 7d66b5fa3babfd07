"""A convolution or maximum pool takes in zeros that are put around its input."""

from __future__ import annotations

import numpy as np

from runtime.clusters.emission import Operation
from runtime.clusters.patterns.pattern import OperationGraph
from runtime.clusters.values import Value

_NON_NEGATIVE = ("Relu", "Sigmoid", "Softplus")


def take_in_pads(graph: OperationGraph, operation: Operation) -> Value | None:
    """Replace a Pad with zeros and a convolution, or a maximum of numbers that are not negative.

    Of these, the maximum with a 0 is the maximum without.
    """
    if operation.op_type not in ("Conv", "MaxPool"):
        return None
    pad = graph.producer(operation.inputs[0], "Pad")
    if pad is None or pad.attributes.get("mode", "constant") != "constant":
        return None
    added = _spatial_pads(pad)
    if added is None:
        return None
    pads = [sum(each) for each in zip(operation.attributes["pads"], added, strict=True)]
    source = pad.inputs[0]
    if operation.op_type == "MaxPool":
        windows = operation.attributes["kernel_shape"]
        if any(size >= window for size, window in zip(pads, windows * 2, strict=True)):
            return None
        if not _is_non_negative(graph, source):
            return None
    made = operation.outputs[0]
    return graph.emission.op(
        operation.op_type,
        [source, *operation.inputs[1:]],
        made.dtype,
        made.shape,
        layout=made.layout,
        **{**operation.attributes, "pads": pads},
    )


def _spatial_pads(pad: Operation) -> list[int] | None:
    """Return the pads before, then after the spatial axes, if they are zeros and nothing else."""
    _, pads, *rest = pad.inputs
    if pads is None or pads.constant is None or len(rest) > 1:
        return None
    value = rest[0] if rest else None
    if value is not None and (value.constant is None or np.any(value.constant)):
        return None
    before, after = np.split(pads.constant.ravel(), 2)
    if np.any(pads.constant < 0) or np.any(before[:2]) or np.any(after[:2]):
        return None
    return [*map(int, before[2:]), *map(int, after[2:])]


def _is_non_negative(graph: OperationGraph, value: Value | None) -> bool:
    if graph.producer(value, *_NON_NEGATIVE) is not None:
        return True
    clip = graph.producer(value, "Clip")
    low = clip.inputs[1] if clip is not None and len(clip.inputs) > 1 else None
    return low is not None and low.constant is not None and bool(np.all(low.constant >= 0))
