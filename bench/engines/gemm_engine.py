"""A product of two 1024² float32 matrices by numpy: the reference by which machines compare."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import numpy as np

from bench.engines.model_inputs import Arrays

SIZE = 1024
FLOATING_POINT_OPERATIONS = 2 * SIZE**3


class GemmEngine:
    """The product in as many BLAS threads as OPENBLAS_NUM_THREADS says; it has no model."""

    name = "reference GEMM"

    def __init__(self, folder: pathlib.Path, threads: int) -> None:
        self.zeros: Arrays = {"a": np.full((SIZE, SIZE), 0.5, np.float32)}

    def load(self) -> None:
        self._result = np.empty((SIZE, SIZE), np.float32)

    def prepare(self, inputs: Arrays) -> Callable[[], Arrays]:
        """Return a function that makes one product, whatever the batch size."""
        a, b = self.zeros["a"], self.zeros["a"].T.copy()
        return lambda: {"product": np.matmul(a, b, out=self._result)}
