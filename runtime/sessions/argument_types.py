"""The types of what a program hands to a session, as far as Python would only fail later."""

from __future__ import annotations

from typing import Any

from runtime.foundation.errors import InvalidArgumentError


def check_type(what: str, value: Any, wanted: type) -> None:
    """Raise InvalidArgumentError if `value` is not a `wanted`."""
    if not isinstance(value, wanted):
        found = type(value).__name__
        raise InvalidArgumentError(f"{what} must be a {wanted.__name__}, got {found}")


def check_message(what: str, value: Any, wanted: type) -> None:
    """Raise InvalidArgumentError if `value` is not a message like `wanted`.

    A message of the same name counts, such as TensorFlow's own.
    """
    if type(value) is wanted:
        return
    descriptor = getattr(value, "DESCRIPTOR", None)
    if getattr(descriptor, "name", None) != wanted.__name__:
        found = type(value).__name__
        raise InvalidArgumentError(f"{what} must be a {wanted.__name__}, got {found}")
