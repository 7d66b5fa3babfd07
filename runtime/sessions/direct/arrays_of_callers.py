"""The arrays of a session's callers, who may write into what they have fed or fetched.

What a session keeps is in arrays of its own: a step that may keep a fed array gets a copy, and a
fetched array that the session keeps, which is read-only, is copied.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from runtime.sessions.runtime_session import Tensor

_Array = np.ndarray  # `owned` runs after every step


def copies(feeds: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return feeds with copies of the arrays."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in feeds.items()
    }


def owned(values: list[Tensor]) -> list[Tensor]:
    """Return fetched values, with copies of the arrays that are read-only.

    An array that repeats its elements stays read-only: a constant of one value can be larger than
    the memory of the machine.
    """
    for value in values:
        if isinstance(value, _Array) and not value.flags.writeable:
            return [_owned(each) for each in values]
    return values


def _owned(value: Tensor) -> Tensor:
    if not isinstance(value, _Array) or value.flags.writeable or 0 in value.strides:
        return value
    return value.copy()
