"""The memory that element-wise kernels need: their inputs broadcast to one shape."""

from __future__ import annotations

import math

import numpy as np

from runtime.framework.tensor_value import TensorValue

# A result, and the same again for an operand that is converted or for a result that is rounded.
_COPIES = 2


def broadcast_need(*inputs: TensorValue) -> int:
    """Return a bound in bytes of the memory of an element-wise kernel on `inputs`.

    No element of the output may be wider than the widest one of the inputs. Inputs that do not
    broadcast need nothing, because the kernel raises before it allocates. Step plans recognise
    this function and call it only if the product of the sizes of the inputs is large.
    """
    try:
        shape = np.broadcast_shapes(*map(np.shape, inputs))
    except ValueError:
        return 0
    return _COPIES * math.prod(shape) * max(np.asarray(each).itemsize for each in inputs)
