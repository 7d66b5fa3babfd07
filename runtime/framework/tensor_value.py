"""The type of a tensor whose element type is not known.

A tensor of numbers or strings is annotated as `np.ndarray`; if its rank is 0, it may also be a
numpy scalar.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

# An array, a numpy scalar, a ResourceHandle, or the object that a variant holds (`TensorList`,
# `Dataset`, …). Only `isinstance` or the op's attributes show which of them a value is.
TensorValue: TypeAlias = object

# For code that must distinguish arrays from scalars, for example because it writes into the array.
ArrayOrScalar: TypeAlias = np.ndarray | np.generic
