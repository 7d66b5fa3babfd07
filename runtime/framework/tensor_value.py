"""The type of a tensor whose element type is not known.

A tensor of numbers or of strings is a `np.ndarray` in annotations; a numpy scalar may stand for
one of rank 0.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

# An array, a numpy scalar, a ResourceHandle, or the object that a variant holds (`TensorList`,
# `Dataset`, …). Only `isinstance` or the op's attributes show which.
TensorValue: TypeAlias = object

# For code that distinguishes the two: `isinstance`, or writing into the array.
ArrayOrScalar: TypeAlias = np.ndarray | np.generic
