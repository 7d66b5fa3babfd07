"""Ragged tensors as the elements of variant tensors.

TF: tensorflow/core/kernels/ragged_tensor_variant.h
"""

from __future__ import annotations

import dataclasses

import numpy as np

from runtime.foundation.errors import InvalidArgumentError


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class RaggedTensorVariant:
    """A ragged tensor: its row splits, outermost first, and its flat values."""

    nested_splits: tuple[np.ndarray, ...]
    values: np.ndarray

    def zeros_like(self) -> RaggedTensorVariant:
        """A ragged tensor with the same row splits whose values are zeros."""
        return RaggedTensorVariant(self.nested_splits, np.zeros_like(self.values))

    def plus(self, other: RaggedTensorVariant) -> RaggedTensorVariant:
        """The sum with the row splits of this one; InvalidArgumentError if value shapes differ."""
        if self.values.shape != other.values.shape:
            raise InvalidArgumentError(
                f"Can't add RaggedTensorVariants of values of shapes {self.values.shape} and "
                f"{other.values.shape}"
            )
        return RaggedTensorVariant(self.nested_splits, np.add(self.values, other.values))
