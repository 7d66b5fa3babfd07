"""Errors that sessions raise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runtime.api import OpError


def error_of(call: Callable[[], object]) -> OpError:
    """The error that `call` raises."""
    with pytest.raises(OpError) as caught:
        call()
    return caught.value
