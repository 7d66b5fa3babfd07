"""Calls on other devices, and which device a node is on; all devices are in this process.

TF: tensorflow/core/kernels/function_ops.cc (RemoteCallOp), functional_ops.cc (DeviceIndexOp)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.attr_value import NameAttrList, text
from runtime.framework.op_kernel import Deferred, KernelDef, OpKernelContext
from runtime.framework.string_tensor import scalar_string


def remote_call(
    context: OpKernelContext, target: Any, *args: Any, f: NameAttrList
) -> list[Any] | Deferred:
    """RemoteCall: the function's outputs; `target` names the device that shall run it.

    Raises InvalidArgumentError for what is no device's name, InternalError for one that the session
    does not have.
    """
    context.step.session.check_device(text(scalar_string(target)))
    return context.start_function(f, *args)


def device_index(*, device_names: tuple[str, ...]) -> np.ndarray:
    """DeviceIndex: the place of "CPU" among the names; their number when it is not there."""
    known = [name.upper() for name in device_names]
    return np.array(known.index("CPU") if "CPU" in known else len(known), np.int32)


KERNELS = (
    KernelDef("DeviceIndex", device_index),
    KernelDef("RemoteCall", remote_call, asynchronous=True),
)
