"""The settings of the log and of traces, as Triton's logging and trace extensions have them.

The log has one level, so that a kind of line can only be written together with all graver ones.
Traces are not written to files here: a step of a session is traced by its option `trace_level`.

Source: Triton's logging and trace extensions
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Set
from typing import Any

from runtime.errors import InvalidArgumentError, UnimplementedError

_OFF = logging.CRITICAL + 1
# From the gravest: the setting, and the level that it stands for.
_KINDS = (
    ("log_error", logging.ERROR),
    ("log_warning", logging.WARNING),
    ("log_info", logging.INFO),
)
_VERBOSE, _FILE, _FORMAT = "log_verbose_level", "log_file", "log_format"
_KNOWN = frozenset({*(name for name, _ in _KINDS), _VERBOSE, _FILE, _FORMAT})
TRACE: Mapping[str, Any] = {
    "trace_level": ["OFF"],
    "trace_rate": "0",
    "trace_count": "-1",
    "log_frequency": "0",
    "trace_file": "",
    "trace_mode": "triton",
}


def _check_known(changes: Mapping[str, Any], known: Set[str]) -> None:
    unknown = ", ".join(sorted(changes.keys() - known))
    if unknown:
        raise InvalidArgumentError(
            f"Unknown settings: {unknown:.200}; known are {', '.join(sorted(known))}"
        )


def log_settings() -> dict[str, Any]:
    """Return what is logged now."""
    level = logging.getLogger().getEffectiveLevel()
    return {
        _FILE: "",  # standard error
        **{name: level <= value for name, value in reversed(_KINDS)},
        _VERBOSE: int(level <= logging.DEBUG),
        _FORMAT: "default",
    }


def change_log_settings(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Change what is logged, and return the settings after that.

    Raises InvalidArgumentError, and changes nothing, if a setting or its value is unknown or a kind
    of line would be written without a graver one, and UnimplementedError for a file or a format.
    """
    _check_known(changes, _KNOWN)
    if changes.get(_FILE) or changes.get(_FORMAT, "default") != "default":
        raise UnimplementedError(
            "The log is written to standard error, in the format of the setting log.format"
        )
    wanted = {**log_settings(), **changes}
    for name, _ in _KINDS:
        if not isinstance(wanted[name], bool):
            raise InvalidArgumentError(f"{name} must be true or false, got {wanted[name]!r:.80}")
    verbose = wanted[_VERBOSE]
    if type(verbose) is not int or verbose < 0:
        raise InvalidArgumentError(
            f"{_VERBOSE} must be an integer of 0 or more, got {verbose!r:.80}"
        )
    level = _OFF
    for name, value in (*_KINDS, (_VERBOSE, logging.DEBUG)):
        if not wanted[name]:
            continue
        graver = [each for each, other in _KINDS if other > value and not wanted[each]]
        if graver:
            raise InvalidArgumentError(f"{name} requires {graver[0]}: the log has one level")
        level = value
    logging.getLogger().setLevel(level)
    return log_settings()


def change_trace_settings(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings; raise UnimplementedError if `changes` would switch traces on.

    Raises InvalidArgumentError if a setting is unknown.
    """
    _check_known(changes, TRACE.keys())
    levels = changes.get("trace_level")
    if levels not in (None, "OFF", [], ["OFF"]):
        raise UnimplementedError(
            "This server writes no trace files; a step of a session is traced by its option "
            "trace_level"
        )
    return dict(TRACE)
