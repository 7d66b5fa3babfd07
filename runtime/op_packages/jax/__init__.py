"""The op of jax2tf exports, whose signature TensorFlow registers itself.

TF: tensorflow/compiler/tf2xla/kernels/xla_call_module_op.cc
"""

from runtime.framework.op_packages import OpPackage

# module of this folder → the ops whose kernels its table KERNELS holds
_MODULES: dict[str, tuple[str, ...]] = {"xla_call_module": ("XlaCallModule",)}

PACKAGE = OpPackage(
    kernel_modules={op: f"{__name__}.{module}" for module, ops in _MODULES.items() for op in ops},
    install="runstep[jax]",
)
