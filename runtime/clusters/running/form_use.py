"""Use: for which runs a compiled form is made, and which forms may stand in for which.

How many uses one form has depends on the engine (`Engine.uses`). A model of ONNX Runtime may be run
by any number of callers, so one with a single thread has all uses but the wide one. Runs of a model
of OpenVINO take turns unless it has several streams, and only a model without streams works in the
thread of its caller, so each use has a form of its own.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping


class Use(enum.IntEnum):  # the hash of an Enum would cost each run of a cluster 0.2 µs
    """What a form is for."""

    WIDE = 0  # a run with helper threads
    NARROW = 1  # a short run, in its caller's thread
    CROWDED = 2  # one of several runs at the same time, each with one thread
    LOW = 3  # a low-priority run, in its caller's thread, which yields by its own priority


# Use of a run → the uses whose forms it may have, the best one first. Normal runs never have the
# form of low-priority runs alone: they would wait for these.
PREFERRED: Mapping[Use, tuple[Use, ...]] = {
    Use.WIDE: (Use.WIDE, Use.NARROW, Use.CROWDED),
    Use.NARROW: (Use.NARROW, Use.WIDE, Use.CROWDED),
    Use.CROWDED: (Use.CROWDED, Use.WIDE, Use.NARROW),
    Use.LOW: (Use.LOW,),
}


def rank(uses: Collection[Use], wanted: Use) -> int | None:
    """Return how well a form with `uses` suits a run, 0 for best; None if it must not have it."""
    return next((place for place, use in enumerate(PREFERRED[wanted]) if use in uses), None)


def is_spare(uses: Collection[Use], others: Collection[Collection[Use]]) -> bool:
    """Return whether a form with `uses` can be freed when it is idle, beside forms with `others`.

    Runs for which it was made may then have one of these until it is compiled again.
    """
    if Use.WIDE in uses:
        return False
    wanted = {Use.WIDE} if Use.NARROW in uses else {Use.WIDE, Use.NARROW}
    return any(not wanted.isdisjoint(each) for each in others)
