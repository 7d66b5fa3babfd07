"""RemoteCall and DeviceIndex.

All devices are in this process.

TF: tensorflow/core/kernels/function_ops.cc (RemoteCallOp), functional_ops.cc (DeviceIndexOp)
"""

from __future__ import annotations

import numpy as np

from runtime.framework.attr_value import NameAttrList, text
from runtime.framework.op_kernel import Deferred, KernelDef, OpKernelContext
from runtime.framework.string_tensor import scalar_string
from runtime.framework.tensor_value import TensorValue


def remote_call(
    context: OpKernelContext, target: np.ndarray, *args: TensorValue, f: NameAttrList
) -> list[TensorValue] | Deferred:
    """RemoteCall: call the function `f` on the device `target` and return its outputs.

    Raises InvalidArgumentError if `target` is not a valid device name, InternalError if the session
    does not have this device.
    """
    context.step.session.check_device(text(scalar_string(target)))
    return context.start_function(f, *args)


def device_index(*, device_names: tuple[str, ...]) -> np.ndarray:
    """DeviceIndex: return the index of "CPU" in `device_names`.

    Returns the number of names if "CPU" is not among them.
    """
    known = [name.upper() for name in device_names]
    return np.array(known.index("CPU") if "CPU" in known else len(known), np.int32)


KERNELS = (
    KernelDef("DeviceIndex", device_index),
    KernelDef("RemoteCall", remote_call, asynchronous=True),
)
