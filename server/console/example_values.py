"""Values that fit a signature, from which a request can be made that is sent as it is."""

from __future__ import annotations

import math
from typing import Any

from runtime.api import DataType

MAX_ELEMENTS = 1 << 14  # of an example; nobody reads a larger one
_NUMBERS: dict[DataType, Any] = {DataType.STRING: "", DataType.BOOL: False}
_WITHOUT = (DataType.RESOURCE, DataType.VARIANT)  # JSON can't express them


def example_value(data_type: DataType, shape: tuple[int, ...] | None) -> Any:
    """Return nested lists of that type and shape; None if no small JSON value fits.

    A dimension that is not known (−1) is 1; if the rank is not known, the value is `[x]`. Numbers
    are 1, except integers that are not scalar: these are often indices, so they are 0.
    """
    dimensions = [1] if shape is None else [max(each, 1) if each < 0 else each for each in shape]
    if data_type in _WITHOUT or math.prod(dimensions) > MAX_ELEMENTS:
        return None
    value = 1 if data_type.is_integer and not dimensions else _element(data_type)
    for length in reversed(dimensions):
        value = [value] * length
    return value


def _element(data_type: DataType) -> Any:
    if data_type.name.startswith("COMPLEX"):
        return [1.0, 0.0]
    return _NUMBERS.get(data_type, 1.0 if data_type.is_floating else 0)
