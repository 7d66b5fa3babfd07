"""Types of values that no attribute tells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runtime.framework.data.dataset import WindowElements
from runtime.framework.data.optional import Optional
from runtime.framework.dtypes import DataType
from runtime.framework.resource_manager import ResourceHandle
from runtime.kernels.data.optionals import element_type


def _serialized_sparse() -> np.ndarray:
    """Indices, values and shape, as SerializeSparse gives them: three variants."""
    parts = np.empty(3, object)
    parts[:] = [np.zeros((1, 2), np.int64), np.ones(1, np.float32), np.array([2, 2])]
    return parts


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(1), DataType.FLOAT),
        (np.array([b"a"], object), DataType.STRING),
        (ResourceHandle("", "name", "type"), DataType.RESOURCE),
        (Optional(), DataType.VARIANT),
        (WindowElements([], (), ()), DataType.VARIANT),
        (_serialized_sparse(), DataType.VARIANT),
    ],
)
def test_element_type(value: Any, expected: DataType) -> None:
    assert element_type(value) is expected
