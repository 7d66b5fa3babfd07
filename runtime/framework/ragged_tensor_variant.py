"""Ragged tensors as the elements of variant tensors.

TF: tensorflow/core/kernels/ragged_tensor_variant.h
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class RaggedTensorVariant:
    """A ragged tensor: the row splits of each ragged dimension, outermost first, and the values."""

    nested_splits: tuple[np.ndarray, ...]
    values: np.ndarray

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the row splits and the values."""
        return 0, (*self.nested_splits, self.values)

    def zeros_like(self) -> RaggedTensorVariant:
        """Return a ragged tensor with the same row splits, whose values are zeros."""
        return RaggedTensorVariant(self.nested_splits, np.zeros_like(self.values))

    def plus(self, other: RaggedTensorVariant) -> RaggedTensorVariant:
        """Return a ragged tensor with the sums of the values and the row splits of this one.

        Raises InvalidArgumentError if the shapes of the values differ.
        """
        if self.values.shape != other.values.shape:
            raise InvalidArgumentError(
                f"Can't add RaggedTensorVariants of values of shapes {self.values.shape} and "
                f"{other.values.shape}"
            )
        return RaggedTensorVariant(self.nested_splits, np.add(self.values, other.values))
