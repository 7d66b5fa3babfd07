"""Optionals: the values of variant tensors that hold a tuple of tensors, or nothing.

TF: tensorflow/core/framework/dataset.h, tensorflow/core/kernels/optional_ops_util.h
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from runtime.framework.tensor_value import TensorValue


@dataclasses.dataclass(frozen=True, slots=True)
class Optional:
    """The value of an optional variant; `components` is None if the optional has no value."""

    components: tuple[TensorValue, ...] | None = None

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the components."""
        return 0, self.components or ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The empty shape, because an optional is the value of a scalar tensor."""
        return ()
