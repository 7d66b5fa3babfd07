"""The arrays of a session's callers, who may write into what they have fed or fetched.

What a session keeps is in arrays of its own: a step that may keep a fed array gets a copy, and a
fetched array that the session keeps, which is read-only, is copied.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from runtime.sessions.runtime_session import Tensor


def copies(feeds: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return feeds with copies of the arrays."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in feeds.items()
    }


def owned(values: list[Tensor]) -> list[Tensor]:
    """Return fetched values, in the same list, with copies of the arrays that are read-only.

    An array that repeats its elements stays read-only: a constant of one value can be larger than
    the memory of the machine.
    """
    for position, value in enumerate(values):
        if isinstance(value, np.ndarray) and not value.flags.writeable and 0 not in value.strides:
            values[position] = value.copy()
    return values
