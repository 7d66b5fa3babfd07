"""The ops of TF Decision Forests and of YDF's exports.

Source: yggdrasil_decision_forests and ydf_tf 2.21 (their inference.so registers the ops).
"""

from runtime.framework.op_packages import OpPackage, read_op_defs

_OPS = (
    "SimpleMLCreateModelResource",
    "SimpleMLInferenceLeafIndexOpWithHandle",
    "SimpleMLInferenceOp",
    "SimpleMLInferenceOpWithHandle",
    "SimpleMLLoadModelFromPath",
    "SimpleMLLoadModelFromPathWithHandle",
)

PACKAGE = OpPackage(
    kernel_modules=dict.fromkeys(_OPS, f"{__name__}.forest_inference"),
    op_defs=lambda: read_op_defs(__name__),
    install="runstep[forests]",
)
