"""An op package: the signatures of two ops, and where their kernels are.

This module is imported when a graph has an op that Runstep does not know. It must import neither
the kernels nor what they require.
"""

from __future__ import annotations

import protos as pb
from runtime.api import OpPackage


def op_defs() -> tuple[pb.OpDef, ...]:
    """Return the signatures. A C++ op has the same ones in its REGISTER_OP."""
    arg, attr, types = pb.OpDef.ArgDef, pb.OpDef.AttrDef, pb.AttrValue.ListValue
    clamped = pb.OpDef(
        name="Clamped",
        input_arg=[arg(name="x", type_attr="T")],
        output_arg=[arg(name="y", type_attr="T")],
        attr=[
            attr(
                name="T",
                type="type",
                allowed_values=pb.AttrValue(list=types(type=[pb.DT_FLOAT, pb.DT_DOUBLE])),
            ),
            attr(name="limit", type="float", default_value=pb.AttrValue(f=1.0)),
        ],
    )
    running_count = pb.OpDef(
        name="RunningCount",
        input_arg=[arg(name="x", type=pb.DT_FLOAT)],
        output_arg=[arg(name="count", type=pb.DT_INT64)],
        is_stateful=True,
    )
    return clamped, running_count


PACKAGE = OpPackage(
    kernel_modules={
        "Clamped": "runstep_example_ops.kernels",
        "RunningCount": "runstep_example_ops.kernels",
    },
    op_defs=op_defs,
    install="runstep-example-ops",
)
