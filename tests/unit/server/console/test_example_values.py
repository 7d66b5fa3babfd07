"""Values that fit a signature."""

from __future__ import annotations

import pytest

from runtime.framework.dtypes import DataType
from server.console.example_values import MAX_ELEMENTS, example_value


@pytest.mark.parametrize(
    ("data_type", "shape", "value"),
    [
        (DataType.FLOAT, (), 1.0),
        (DataType.FLOAT, (-1, 2), [[1.0, 1.0]]),
        (DataType.INT64, None, [0]),
        (DataType.INT32, (), 1),
        (DataType.STRING, (2,), ["", ""]),
        (DataType.BOOL, (-1,), [False]),
        (DataType.COMPLEX64, (1,), [[1.0, 0.0]]),
        (DataType.FLOAT, (0, 3), []),
        (DataType.RESOURCE, (), None),
        (DataType.FLOAT, (MAX_ELEMENTS + 1,), None),
    ],
)
def test_examples(data_type: DataType, shape: tuple[int, ...] | None, value: object) -> None:
    assert example_value(data_type, shape) == value
