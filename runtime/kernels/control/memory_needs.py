"""What the kernels of this room allocate themselves.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple. The nodes of a function
that an op calls have bounds of their own.
"""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType, Types
from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.partial_shapes import PartialShape, Shapes
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import (
    POINTER,
    STRING,
    VIEW,
    dense,
    elements,
    shape_of,
    size_of,
    text_in,
)

V = TensorValue
SHOWN = 160  # bytes of an element in a text: a number, its digits, and its place in lists
CALLS = (
    "BatchFunction", "Case", "For", "If", "PartitionedCall", "RemoteCall",
    "StatefulPartitionedCall", "StatelessCase", "StatelessIf", "StatelessWhile",
    "SymbolicGradient", "While",
)  # fmt: skip


def _shown(tensors: tuple[V, ...], summarize: int) -> int:
    # a negative `summarize` shows all elements
    each = (
        min(elements(one), 2 * summarize + 8) if summarize >= 0 else elements(one)
        for one in tensors
    )
    text = max(map(text_in, tensors), default=0) if tensors else 0
    return (sum(each) + 1) * SHOWN + 8 * text + 2 * size_of(*tensors)


def _assert(condition: V, *data: V, summarize: int) -> int:
    is_true = elements(condition) == 1 and bool(np.asarray(condition).all())
    return 0 if is_true else _shown(data, summarize)


def _print(input: V, *data: V, summarize: int) -> int:
    return _shown(data, summarize)


def _format(*inputs: V, summarize: int, template: str) -> int:
    return 4 * _shown(inputs, summarize) + 4 * len(template)


def _summary(input: V) -> int:
    return elements(input) * 60 + STRING


def _fake_param(*, dtype: DataType, shape: PartialShape) -> int:
    return dense([max(size, 0) for size in shape or ()], dtype.numpy) + STRING


def _map_defun(*arguments: V, Targuments: Types, output_types: Types, output_shapes: Shapes) -> int:
    # what `f` returns is counted by its nodes; of a shape that is not known, `check_allocation`
    # limits the stacked tensor
    calls = (shape_of(arguments[0]) or (0,))[0] if arguments else 0
    outputs = zip(output_shapes, output_types, strict=False)
    stacked = sum(
        dense([max(size, 0) for size in shape or ()], kind.numpy) + VIEW for shape, kind in outputs
    )
    views = len(Targuments) + len(output_types)
    return calls * (stacked + views * (VIEW + 2 * POINTER)) + len(output_types) * VIEW


MEMORY_NEEDS: dict[str, MemoryNeed] = {
    "Assert": _assert,
    "Print": _print,
    "StringFormat": _format,
    "FakeParam": _fake_param,
    "MapDefun": _map_defun,
    **dict.fromkeys(("DebugNumericSummary", "DebugNumericSummaryV2"), _summary),
}

INPUT_MULTIPLES: dict[str, int] = {
    **dict.fromkeys(CALLS, 0),
    **dict.fromkeys(
        (
            "ControlTrigger", "DebugGradientIdentity", "DebugGradientRefIdentity",
            "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3", "DeviceIndex", "RefSelect",
            "RefSwitch", "Switch", "Timestamp", "_HostRecv", "_HostSend", "_Recv", "_Send",
            "_SwitchN",
        ),
        0,
    ),
    **dict.fromkeys(("Batch", "DebugNanCount", "Unbatch", "UnbatchGrad"), 4),
    "PrintV2": 8,
}  # fmt: skip
