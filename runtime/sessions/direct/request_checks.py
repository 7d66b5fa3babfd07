"""Checks of what a program hands to a direct session, where Python would only fail later.

A tensor's name that is no string, for example, would fail deep inside the compiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.sessions.argument_types import check_message, check_type
from runtime.sessions.runtime_session import RunRequest

_LISTS = (list, tuple)


def check_request(request: RunRequest) -> None:
    """Raise InvalidArgumentError if a field has a wrong type; names are checked by `check_names`.

    Fetches and targets that can be read only once, as those of a generator, become tuples.
    """
    if type(request.feeds) is not dict:
        check_type("feeds", request.feeds, Mapping)
    if type(request.fetches) not in _LISTS:
        request.fetches = _names("fetches", request.fetches)
    if type(request.targets) not in _LISTS:
        request.targets = _names("targets", request.targets)
    if request.options is not None:
        check_message("options", request.options, pb.RunOptions)
    if request.metadata is not None:
        check_message("metadata", request.metadata, pb.RunMetadata)


def check_names(what: str, names: Iterable[str]) -> None:
    """Raise InvalidArgumentError if one of `names` is not a string."""
    for name in _names(what, names):
        if not isinstance(name, str):
            raise InvalidArgumentError(f"{what} must be names of the graph, got {name!r}")


def _names(what: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise InvalidArgumentError(f"{what} must be a list of names, got {names!r}")
    return tuple(names)
