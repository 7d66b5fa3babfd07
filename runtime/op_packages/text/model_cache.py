"""Models that were read from tensors, kept as long as the tensors.

The model of a SavedModel is a constant, which is the same array at every step.

Guarantees: thread-safe; a model is used only with the bytes that it was read from; at most
`_KEPT` models are kept.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from runtime.foundation.errors import InvalidArgumentError

Model = TypeVar("Model")
_KEPT = 16


class ModelCache(Generic[Model]):
    """The models that `read` made of arrays, by the arrays' identity."""

    def __init__(self, read: Callable[[np.ndarray], Model]) -> None:
        self._read = read
        self._lock = threading.Lock()  # guards `_kept`
        self._kept: dict[int, tuple[weakref.ref[np.ndarray], bytearray, Model]] = {}

    def get(self, data: np.ndarray) -> Model:
        """Return the model in `data`, uint8 `[n]`, or raise what `read` raises.

        `read` gets a copy of `data`, so that nothing changes the model or keeps `data`.
        """
        if data.dtype != np.uint8 or data.ndim != 1:
            raise InvalidArgumentError(
                f"Expected a model of uint8 [n], got {data.dtype} {list(data.shape)}"
            )
        with self._lock:
            kept = self._kept.get(id(data))
        contents = np.ascontiguousarray(data).data
        # An array that is fed may have other contents at the next step. A bytearray compares itself
        # with any memory, 30 GB a second.
        if kept is not None and kept[0]() is data and kept[1] == contents:
            return kept[2]
        copy = bytearray(contents)
        model = self._read(np.frombuffer(copy, np.uint8))
        with self._lock:
            while len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept), 0), None)
            key = id(data)
            reference = weakref.ref(data, lambda _: self._kept.pop(key, None))
            self._kept[key] = (reference, copy, model)
        return model
