"""How many threads a short run should have, and how long helper threads spin after any run.

Helper threads make a short run faster, and cost the time of other processors: their work, and what
they spin after it. A program that runs a model itself waits for it, so the faster of two measured
forms is kept. A server has other requests for those processors, so helpers must pay for what they
cost.

Helpers that sleep take the next run 0.1 ms to wake. Between two runs of a model of 2 ms a program
is busy for 60 to 80 µs, as its code has left the caches, so there helpers spin for longer than
that.

Guarantees: thread-safe; the choice is one of the process and is read when a form is compiled and
when it is judged.
"""

from __future__ import annotations

# Fewer bytes of weights stay in the caches of one core, so that short runs gain nothing by another.
WIDE_BYTES = 1 << 20
# The narrow form must take so many times as long. The shortest of its runs varies by up to a tenth.
_GAIN_IF_WAITED_FOR = 1.1
# For a server: helpers must save a third of a run at least, and all threads together, with
# SPIN_SECONDS after the run, may take _COST times as long as one thread.
_GAIN = 1.5
_COST = 2.0
SPIN_SECONDS = 50e-6
_SPIN_SECONDS_IF_WAITED_FOR = 200e-6
_is_shared = [False]


def share_processors_among_runs() -> None:
    """Let short runs have helper threads only if these pay: other requests need the processors.

    This holds for the process, and for forms that are judged from now on.
    """
    _is_shared[0] = True


def spin_seconds() -> float:
    """Return how long helpers of a model that is compiled now look for work before they sleep.

    The default of ONNX Runtime burns 40 % of a core for 100 ms after each run; without any spinning
    small models are 1.3 times slower.
    """
    return SPIN_SECONDS if _is_shared[0] else _SPIN_SECONDS_IF_WAITED_FOR


def may_pay(bytes_held: int, narrow_seconds: float) -> bool:
    """Return whether a run that one thread takes `narrow_seconds` for is tried with helpers."""
    if bytes_held <= WIDE_BYTES:
        return False
    return not _is_shared[0] or narrow_seconds * _COST > SPIN_SECONDS


def pays(narrow_seconds: float, wide_seconds: float, wide_threads: int) -> bool:
    """Return whether the form with `wide_threads` threads is the better one."""
    if not _is_shared[0]:
        return narrow_seconds >= wide_seconds * _GAIN_IF_WAITED_FOR
    cost = wide_seconds * wide_threads + SPIN_SECONDS
    return narrow_seconds >= max(wide_seconds * _GAIN, cost / _COST)
