"""_Send and _Recv: transfer of a tensor from one partition of a step to another.

TF: tensorflow/core/kernels/sendrecv_ops.cc
"""

from __future__ import annotations

from runtime.framework.op_kernel import Deferred, KernelDef, OpKernelContext
from runtime.framework.tensor_value import TensorValue


def send(
    context: OpKernelContext,
    tensor: TensorValue,
    *,
    tensor_name: str,
    send_device: str,
    recv_device: str,
) -> None:
    """_Send: put `tensor` into the step's rendezvous."""
    context.step.send(f"{send_device};{recv_device};{tensor_name}", tensor)


def recv(
    context: OpKernelContext, *, tensor_name: str, send_device: str, recv_device: str
) -> Deferred:
    """_Recv: return a Deferred of a tensor that _Send puts into the step's rendezvous."""
    return context.step.receive(f"{send_device};{recv_device};{tensor_name}")


KERNELS = (
    KernelDef("_Send", send),
    KernelDef("_HostSend", send),
    KernelDef("_Recv", recv, asynchronous=True),
    KernelDef("_HostRecv", recv, asynchronous=True),
)
