"""Ray's errors as OpErrors."""

from __future__ import annotations

import re

from ray import exceptions

from runtime.foundation.errors import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    OpError,
    ResourceExhaustedError,
    UnavailableError,
)

_LONGEST = 400  # characters of Ray's own text in a message
# The first row whose class fits decides.
_CLASSES: tuple[tuple[type[Exception], type[OpError], str], ...] = (
    (exceptions.GetTimeoutError, DeadlineExceededError, "Timed out waiting for notification"),
    (exceptions.ActorUnschedulableError, UnavailableError, "The actor can't be placed"),
    (exceptions.ActorUnavailableError, UnavailableError, "The actor can't be reached at present"),
    (exceptions.ActorDiedError, AbortedError, "The session is lost with its actor"),
    (exceptions.ObjectStoreFullError, ResourceExhaustedError, "The object store is full"),
    (exceptions.OutOfDiskError, ResourceExhaustedError, "The object store's disk is full"),
    (exceptions.OutOfMemoryError, ResourceExhaustedError, "The node is out of memory"),
    (exceptions.PendingCallsLimitExceeded, ResourceExhaustedError, "Too many calls wait"),
    (exceptions.ObjectLostError, UnavailableError, "A tensor was lost on its way"),
    (exceptions.LocalRayletDiedError, UnavailableError, "This machine's node has ended"),
    (exceptions.RayError, UnavailableError, "Ray failed"),
)
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
# Why an actor does not answer, in the midst of its ids and of hints.
_REASON = re.compile(
    r"The actor (?:is )?((?:dead|died) because [^.\n]*|temporarily unavailable[^.\n]*)"
)


def as_ray_error(error: BaseException, where: str) -> OpError:
    """Return the OpError of what a call of an actor `where` raised."""
    if isinstance(error, OpError):
        return error
    if isinstance(error, exceptions.RayTaskError):
        return InternalError(f"{where}: {type(error.cause).__name__}: {_text(error.cause)}")
    if isinstance(error, exceptions.ActorDiedError) and _failed_to_start(error):
        return FailedPreconditionError(
            f"{where} could not start; the node must have the same runstep as this program: "
            f"{_last_line(error)}"
        )
    for kind, op_error, meaning in _CLASSES:
        if isinstance(error, kind):
            told = "" if op_error is DeadlineExceededError else f" ({where}: {_text(error)})"
            return op_error(meaning + told)
    return InternalError(f"{where}: {type(error).__name__}: {_text(error)}")


def _failed_to_start(error: exceptions.ActorDiedError) -> bool:
    return "creation task" in str(error)


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in _ESCAPES.sub("", str(error)).splitlines() if line.strip()]
    return lines[-1][:_LONGEST] if lines else type(error).__name__


def _text(error: BaseException) -> str:
    """Return Ray's text in one line; of an actor's failure, only the sentence with the reason."""
    text = _ESCAPES.sub("", str(error))
    reason = _REASON.search(text)
    return " ".join((reason[1] if reason else text).split())[:_LONGEST]
