"""Optionals: the values of variant tensors that hold a tuple of tensors, or nothing.

TF: tensorflow/core/framework/dataset.h, tensorflow/core/kernels/optional_ops_util.h
"""

from __future__ import annotations

import dataclasses

from runtime.framework.tensor_value import TensorValue


@dataclasses.dataclass(frozen=True, slots=True)
class Optional:
    """The value of an optional variant; `components` is None when it has no value."""

    components: tuple[TensorValue, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """An optional is a scalar tensor."""
        return ()
